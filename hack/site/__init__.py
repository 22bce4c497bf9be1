"""The site of the documents: `make docs` builds it into `dist/site`, by Sphinx in an environment of its own."""
