"""From a composed config to a validated job."""
