def findings(tables):
    raise NotImplementedError
