"""Keys whose values are sensitive, whatever the model says.

Allergies and diets are not among them, since they matter in everyday requests.
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
"""Words that make every key sensitive that contains them, as in ``asthma_medication``."""


def is_sensitive(key: str) -> bool:
    """Whether the values of this key are sensitive."""
    return key in KEYS or not WORDS.isdisjoint(key.split("_"))
