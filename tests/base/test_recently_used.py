"""RecentlyUsed: what is dropped first, and the bounds."""

from largesse.base.recently_used import RecentlyUsed


def weighed(*, max_entries: int = 100) -> RecentlyUsed[object, bytes]:
    return RecentlyUsed(max_entries=max_entries, max_total=10, weigh=len)


def test_drops_what_was_used_longest_ago() -> None:
    recent = weighed()
    recent.put("a", b"12345")
    recent.put("b", b"12345")
    assert recent.get("a") == b"12345"
    recent.put("c", b"1")
    assert recent.get("b") is None
    assert recent.get("a") == b"12345"
    recent.put("d", b"1234")
    assert recent.get("c") == b"1"


def test_holds_no_more_than_its_number_however_light() -> None:
    recent = weighed(max_entries=3)
    for key in range(4):
        recent.put(key, b"")
    assert [recent.get(key) for key in range(4)] == [None, b"", b"", b""]
    assert len(recent) == 3


def test_does_not_store_what_outweighs_it() -> None:
    recent = weighed()
    recent.put("a", b"1")
    recent.put("b", b"x" * 11)
    assert recent.get("b") is None
    assert recent.get("a") == b"1"


def test_a_new_value_of_a_key_replaces_the_former_and_its_weight() -> None:
    recent = weighed()
    for _ in range(3):
        recent.put("a", b"12345")
    recent.put("b", b"12345")
    assert (recent.get("a"), recent.get("b")) == (b"12345", b"12345")
    recent.put("a", b"x" * 11)
    assert recent.get("a") is None


def test_without_weights_only_the_number_counts() -> None:
    recent: RecentlyUsed[int, bytes] = RecentlyUsed(max_entries=2)
    for key in range(3):
        recent.put(key, b"x" * 1_000)
    assert [recent.get(key) is not None for key in range(3)] == [False, True, True]
