"""Words of many languages, kept as data: one file a language, and the calendar's from CLDR."""
