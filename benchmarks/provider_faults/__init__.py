"""A provider that does sixty bad things, one at a time, and what each costs the person: nothing."""
