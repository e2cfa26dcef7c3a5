def content(tables):
    raise NotImplementedError
