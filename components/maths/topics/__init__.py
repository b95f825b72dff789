"""What inference of topics is made of: factors of documents, sweeps over words, and bounds."""
