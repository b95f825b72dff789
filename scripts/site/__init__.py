"""The documents as a site: links, generated pages and navigation for MkDocs."""
