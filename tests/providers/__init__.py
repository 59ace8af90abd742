"""The providers of the model: one suite over stand-ins that demand their signatures."""
