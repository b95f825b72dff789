"""From words to a validated job: compose, expand, validate, check, job."""
