from typing import Any
GLOBAL = "without network"
def summarise(kept: Any, seed: int) -> Any:
    return {}
