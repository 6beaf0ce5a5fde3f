"""DDP and FSDP with onesum as with gloo, and with the same bits however the batches are spread."""

import pytest
import torch
from ranks import expect_success, run_ranks


def train(tmp_path, backend, wrapper, size, micro=1):
    weights = tmp_path / f"{backend}-{wrapper}-{size}-{micro}.pt"
    ends = run_ranks("training.py", size, backend, wrapper, str(micro), str(weights))
    expect_success(ends)
    losses = [float(word) for word in ends[0].out.split()]
    assert losses[-1] < losses[0], losses
    return losses, torch.load(weights)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("wrapper", ["ddp", "fsdp1", "fsdp2", "sparse"])
def test_the_same_loss_as_with_gloo(tmp_path, wrapper, size):
    ours, _ = train(tmp_path, "onesum", wrapper, size)
    theirs, _ = train(tmp_path, "gloo", wrapper, size)
    assert ours == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize("wrapper", ["ddp", "fsdp2"])
def test_the_same_bits_on_two_ranks_as_on_four(tmp_path, wrapper):
    _, of_four = train(tmp_path, "onesum", wrapper, 4)
    _, of_two = train(tmp_path, "onesum", wrapper, 2, micro=2)
    for name, weights in of_four.items():
        assert torch.equal(weights.view(torch.int32), of_two[name].view(torch.int32)), name
