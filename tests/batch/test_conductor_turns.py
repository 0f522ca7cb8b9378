from tkperf.batch.conductor import APART_S, Turns


def test_drives_begin_in_the_order_of_their_group() -> None:
    turns = Turns(groups=[[2, 1], [3]])
    assert turns.choose([1, 2, 3], frozenset(), 0) == 2
    assert turns.choose([1, 3], frozenset({2}), 0) == 1


def test_a_group_waits_for_all_of_the_one_before() -> None:
    turns = Turns(groups=[[1, 2], [3, 4]])
    assert turns.choose([3, 4], frozenset({1}), 0) is None
    assert turns.choose([3, 4], frozenset(), 0) == 3
    assert turns.choose([4], frozenset({3}), 0) == 4
    assert turns.choose([], frozenset({4}), 0) is None


def test_a_drive_that_another_process_still_measures_holds_up_all_others() -> None:
    assert Turns(groups=[[1, 2]]).choose([1, 2], frozenset({7}), 0) is None


def test_a_drive_that_has_gone_holds_up_nothing() -> None:
    assert Turns(groups=[[1, 2], [3]]).choose([2, 3], frozenset(), 0) == 2


def test_two_beginnings_on_one_link_are_apart_by_the_stagger() -> None:
    parts = {1: frozenset({"hba"}), 2: frozenset({"hba", "x8"}), 3: frozenset({"x4"})}
    turns = Turns(groups=[[1, 2, 3]], parts=parts, stagger_s=30)
    turns.begin(1, 100.0)
    assert turns.choose([2, 3], frozenset({1}), 110.0) == 3
    turns.begin(3, 110.0)
    assert turns.choose([2], frozenset({1, 3}), 129.0) is None
    assert turns.choose([2], frozenset({1, 3}), 130.0) == 2


def test_drives_of_which_no_link_is_known_may_share_one() -> None:
    turns = Turns(groups=[[1, 2]], stagger_s=30)
    turns.begin(1, 0.0)
    assert turns.choose([2], frozenset({1}), 29.0) is None
    assert turns.choose([2], frozenset({1}), 30.0) == 2


def test_no_two_drives_begin_at_once_whatever_they_share() -> None:
    parts = {1: frozenset({"x4"}), 2: frozenset({"x8"})}
    turns = Turns(groups=[[1, 2, 3]], parts=parts, simulated=frozenset({3}))
    turns.begin(1, 0.0)
    assert turns.choose([2], frozenset({1}), APART_S / 2) is None
    assert turns.choose([2], frozenset({1}), APART_S) == 2


def test_simulated_drives_hold_up_nothing() -> None:
    turns = Turns(groups=[[1, 2, 3]], simulated=frozenset({1, 3}))
    turns.begin(1, 0.0)
    assert turns.choose([2, 3], frozenset({1}), 0.0) == 2
    turns.begin(2, 0.0)
    assert turns.choose([3], frozenset({1, 2}), 0.0) == 3
