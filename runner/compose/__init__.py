"""From a command line to a validated job: compose, expand, validate, check, job."""
