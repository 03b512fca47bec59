"""What leaves for a provider goes to that provider and to nobody else."""

from __future__ import annotations

from benchmarks.provider_faults import redirects


def test_no_redirect_takes_a_key_or_a_word_to_another_host() -> None:
    sent = list(redirects.run())
    assert len(sent) >= 190
    assert [(one.model, one.call, one.code) for one in sent if one.leaked] == []
    unclear = [one for one in sent if one.saw.count("http://127.0.0.1:") != 2]
    assert unclear == []
