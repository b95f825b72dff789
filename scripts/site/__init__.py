"""Site of the documents: links, generated pages and navigation for MkDocs."""
