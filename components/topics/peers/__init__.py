"""Topic models of other packages, through adapters."""
