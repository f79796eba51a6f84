"""Names of stored values. A value that only a later release knows is shown as it is, as two releases may run side by side."""


class Names(dict[str, str]):
    """Names by value, as `text` marks them."""

    def __missing__(self, value: str) -> str:
        return value


class StateNames(dict[str, tuple[str, str]]):
    """The kind of each state, such as `good`, by which it is coloured, and its name."""

    def __missing__(self, value: str) -> tuple[str, str]:
        return "still", value
