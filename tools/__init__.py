"""Programs for who works on the project: `dist` builds the packages, `check_site` follows the links of a built site."""
