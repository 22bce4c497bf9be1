"""Tables of named test cases."""

import pytest


def cases(names: str, *rows: tuple[object, ...]) -> pytest.MarkDecorator:
    """Parametrize a test by rows of an id and one value for each of the names.

    :param names: of the arguments, with commas between them
    """
    return pytest.mark.parametrize(names, [pytest.param(*values, id=str(name)) for name, *values in rows])
