"""Keys whose values are sensitive, whatever a model says of them.

What people are allergic to and what they eat is not among them: it matters in everyday requests.
"""

from __future__ import annotations

_KEYS = """
health health_condition health_issue health_problem health_history mental_health
chronic_condition blood_pressure sex_life political_party party_membership
diabetes asthma depression anxiety cancer epilepsy adhd autism dementia
"""
_WORDS = """
diagnosis diagnoses illness illnesses disease diseases disability disorder medical medication
medications medicine medicines prescription prescriptions therapy therapist psychiatrist symptom
symptoms surgery pregnancy pregnant addiction hiv
debt debts salary wage wages income bankruptcy
religion religious faith denomination political politics sexuality sexual
"""
KEYS = frozenset(_KEYS.split())
WORDS = frozenset(_WORDS.split())
"""Words that make any key sensitive they stand in, as in ``asthma_medication``."""


def is_sensitive(key: str) -> bool:
    """Whether what stands under this key is sensitive."""
    return key in KEYS or not WORDS.isdisjoint(key.split("_"))
