from collections.abc import Callable

from tkperf.pipeline.batch.turns import Turns


def turns(
    *,
    most: int | None = None,
    fits: Callable[[frozenset[int]], bool] = lambda _: True,
    parts: dict[int, frozenset[str]] | None = None,
    stagger_s: float = 0.0,
) -> Turns:
    return Turns(most=most, fits=fits, parts=parts or {}, stagger_s=stagger_s)


def test_drives_begin_in_their_order_up_to_the_number_asked_for() -> None:
    two = turns(most=2)
    assert two.choose([1, 2, 3], frozenset(), 0) == 1
    assert two.choose([2, 3], frozenset({1}), 0) == 2
    assert two.choose([3], frozenset({1, 2}), 0) is None
    assert two.choose([3], frozenset({2}), 9) == 3
    assert two.choose([], frozenset(), 0) is None


def test_a_drive_that_does_not_fit_lets_the_next_one_go_first() -> None:
    # 1 and 2 share a link that carries only one of them.
    shared = turns(fits=lambda drives: not {1, 2} <= drives)
    assert shared.choose([2, 3], frozenset({1}), 0) == 3
    assert shared.choose([2], frozenset({1, 3}), 0) is None
    assert shared.choose([2], frozenset({3}), 0) == 2


def test_a_drive_alone_always_begins() -> None:
    """Its own link may be all that is too slow, or nothing is known of it."""
    never = turns(fits=lambda _: False)
    assert never.choose([1, 2], frozenset(), 0) == 1
    assert never.choose([2], frozenset({1}), 0) is None
    assert never.most_others(1, [1, 2]) == 0


def test_two_beginnings_on_one_link_are_apart_by_the_stagger() -> None:
    slow = turns(
        parts={1: frozenset({"hba"}), 2: frozenset({"hba"}), 3: frozenset({"x4"})}, stagger_s=30
    )
    slow.begin(1, 100.0)
    assert slow.choose([2, 3], frozenset({1}), 110.0) == 3
    slow.begin(3, 110.0)
    assert slow.choose([2], frozenset({1, 3}), 129.0) is None
    assert slow.choose([2], frozenset({1, 3}), 130.0) == 2


def test_drives_of_which_no_link_is_known_may_share_one() -> None:
    slow = turns(stagger_s=30)
    slow.begin(1, 0.0)
    assert slow.choose([2], frozenset({1}), 29.0) is None
    assert slow.choose([2], frozenset({1}), 30.0) == 2


def test_most_others_are_the_drives_that_fit_with_one() -> None:
    pairs = turns(fits=lambda drives: len({(number + 1) // 2 for number in drives}) == 1)
    assert pairs.most_others(3, [1, 2, 3, 4]) == 1
    assert turns().most_others(3, [1, 2, 3, 4]) == 3
    assert turns(most=2).most_others(3, [1, 2, 3, 4]) == 1
