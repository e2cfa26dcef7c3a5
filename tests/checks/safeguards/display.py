"""Safeguards of `display/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    # What a notebook shows.
    mutation(
        "text in a notebook is escaped", "display/markup.py",
        "    return escape(show(value, limit))", "    return Markup(show(value, limit))",
        "display/test_tables.py::test_text_from_a_user_is_text",
    ),
    mutation(
        "characters in a notebook can be read", "display/markup.py",
        "    return escape(show(value, limit))", "    return escape(value)",
        "display/test_tables.py::test_text_from_a_user_is_text",
    ),
    mutation(
        "the page in a notebook has no rights", "display/page.py",
        'sandbox="allow-scripts allow-downloads" ', "",
        "display/test_page.py::test_the_frame_holds_the_page_that_is_written_and_gives_it_no_rights",
    ),
    mutation(
        "the page in a notebook has an origin of its own", "display/page.py",
        'sandbox="allow-scripts allow-downloads" ', 'sandbox="allow-scripts allow-downloads allow-same-origin" ',
        "display/test_page.py::test_the_frame_holds_the_page_that_is_written_and_gives_it_no_rights",
    ),
    mutation(
        "links in a frame stay in it", "display/page.py",
        "}about:srcdoc#", "}#",
        "display/test_page.py::test_links_within_the_page_stay_in_the_frame",
    ),
    mutation(
        "a table that is broken can be printed", "display/tables.py",
        "except Exception as error:  # noqa: BLE001 - whoever", "except NotImplementedError as error:  # whoever",
        "display/test_tables.py::test_a_table_that_does_not_hold_together_is_shown_all_the_same",
    ),
)  # fmt: skip
