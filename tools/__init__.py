"""Programs for who works on the project: `dist` builds the packages, `check_site` follows the links of a built site,
`compile_tests` compiles the tests for pytest, `draw_demo_pictures` draws the pictures of the demo's gifts, `take_pictures` takes those
of the README."""
