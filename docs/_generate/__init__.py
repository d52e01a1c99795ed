"""Pages, tables and figures of the site that are written from the package and from measurements."""
