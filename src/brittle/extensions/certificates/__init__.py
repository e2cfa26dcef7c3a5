"""How far each prediction provably keeps, by linear relaxation of the layers."""
