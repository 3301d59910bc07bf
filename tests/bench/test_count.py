# SPDX-License-Identifier: Apache-2.0
"""The ideal that `make arm-count` compares with, against a count by hand."""

from tests.arm.count_ideal import Weights, block, group, grouped

Q4S = Weights(4, offset=True)


def test_one_token_of_symmetric_4_bit_weights_by_hand() -> None:
    """256 bytes of weights in 8 loads, 32 of activations in one; scales of rows, of the token, and its sum: three."""
    one = block("sdot", Q4S, tokens=1, vectors=4, width=1)
    assert one == {"load": 8 + 1 + 3, "unpack": 32, "dot": 32, "scale": 12}


def test_eight_tokens_on_matrix_products_by_hand() -> None:
    """Four passes of one vector of rows: each reads 4 weight vectors, 8 times 32 zipped bytes, and what scales."""
    eight = block("smmla", Q4S, tokens=8, vectors=1, width=8)
    assert eight["load"] == 4 * (4 + 8 + 1 + 2 * 2) + 8 + 2
    assert eight["zip"] == 4 * 8 + 8 + 2 * 2
    assert eight["dot"] == 4 * 32
    assert eight["scale"] == 4 * 24


def test_the_cheapest_cut_is_taken_and_more_tokens_never_cost_less() -> None:
    for unit in ("neon_dotprod", "neon_i8mm"):
        for weights in (Q4S, Weights(4, affine=True), Weights(8)):
            totals = [group(unit, weights, m, m).total() for m in range(1, 17)]
            assert totals == sorted(totals)
            assert all(total <= m * totals[0] for m, total in enumerate(totals, 1))


def test_a_call_is_its_groups() -> None:
    assert grouped("neon_dotprod", Q4S, {"m": 1, "k": 2048}).total() == 64 * 88
