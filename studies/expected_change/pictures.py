def pictures(tables):
    raise NotImplementedError
