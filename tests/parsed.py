"""Python sources as trees. The tests of the house read the same ones again and again."""

import ast
from functools import cache


@cache
def tree(source: str) -> ast.Module:
    """The tree of a source."""
    return ast.parse(source)


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a source, as `ast.walk` yields them."""
    return tuple(ast.walk(tree(source)))
