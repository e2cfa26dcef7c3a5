"""Safeguards of `report/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import Mutation, mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "what is drawn is what Vega-Lite knows", "report/charts_style.py",
        "aria=False,", 'aria="none",',
        "report/test_figure.py::test_every_specification_is_one_of_vega_lite",
    ),
    # The run folder.
    mutation(
        "a page reads robustness by class from its overview", "report/contents.py",
        "same = column is self.overview.numbers and", "same = False and",
        "report/page/test_render.py::test_what_chapters_share_is_computed_once",
    ),
    mutation(
        "a report is written as every file", "report/page/render.py",
        '    write(path, render(contents, chapters).encode("utf-8"))\n',
        '    path.write_text(render(contents, chapters), encoding="utf-8", newline="\\n")\n',
        "store/files/test_writing.py::test_every_file_is_written_by_one_function",
    ),
    # Numbers.
    mutation(
        "numbers below every draw are shown as a bound", "report/wording.py",
        "return f\"below {at_most(max(high, SMALLEST))}, by {model}\"",
        "return f\"{flip:.3g}, by {model}\"",
        "scores/test_evidence.py::test_a_number_that_was_not_seen_is_shown_as_a_bound",
    ),
    mutation(
        "the report shows a number that was not seen as a bound", "report/chapters/fragile/chapter.py",
        "    if _is_extrapolated(row) and contents.chosen is not None:\n", "    if False:\n",
        "report/chapters/fragile/test_chapter.py::test_a_number_that_was_not_seen_is_a_bound",
    ),
    # What is shown.
    mutation(
        "text in the report is escaped", "report/page/render.py",
        "        autoescape=True,\n", "        autoescape=False,\n",
        "report/page/test_render.py::test_hostile_text_in_every_field_is_shown_as_text",
    ),
    mutation(
        "content security policy of the report", "report/page/page.html.jinja",
        '<meta http-equiv="Content-Security-Policy" content="{{ policy }}">\n', "",
        "report/page/test_render.py::test_the_page_is_well_formed_and_inert",
    ),
    mutation(
        "the policy names the script of the page", "report/page/policy.py",
        "[f\"script-src '{digest(script)}'\"]", "[\"script-src 'unsafe-inline'\"]",
        "report/page/test_render.py::test_the_page_is_well_formed_and_inert",
    ),
    mutation(
        "the policy names the style of the page", "report/page/policy.py",
        "f\"style-src '{digest(style)}'\"]", "\"style-src 'unsafe-inline'\"]",
        "report/page/test_render.py::test_the_page_is_well_formed_and_inert",
    ),
    mutation(
        "no text ends the data of the page", "report/page/packed.py",
        r'.replace("<", "\\u003c")', "",
        "report/page/test_packed.py::test_no_text_ends_the_element",
    ),
    mutation(
        "no character hides on the page", "report/page/js/text.js",
        r"text.replace(/\p{C}|[^\P{Z} ]/gu, ", "text.replace(/(?!)/gu, ",
        "browser/test_hostile.py::test_no_character_hides_on_the_page",
    ),
    mutation(
        "nearest other inputs stay with their run", "report/page/js/card.js",
        "return columns[state.by].run === 0;", "return true;",
        "browser/test_other_runs.py::test_the_nearest_other_inputs_of_this_run_are_not_given_to_another",
    ),
    mutation(
        "states are of the copies that were drawn for the limit", "report/page/js/selection.js",
        "  const column = judgeOf(columns[state.by]);\n", "  const column = columns[state.by];\n",
        "browser/test_decided.py::test_states_are_of_the_copies_for_the_limit_and_numbers_of_the_finished_ones",
    ),
    mutation(
        "points that were chosen are called so at every limit", "report/page/js/overview.js",
        "return shown(`${chosen}${noise}", "return shown(`${noise}",
        "browser/test_first_screen.py::test_the_first_screen_says_what_the_analysis_says[chosen points]",
    ),
    mutation(
        "the page says where copies are too few", "report/page/js/overview.js",
        "${said}${tooFew()}${lost}", "${said}${lost}",
        "browser/test_first_screen.py::test_the_first_screen_says_what_the_analysis_says[too few copies]",
    ),
    mutation(
        "confidence holds no point on the page", "report/page/js/selection.js",
        "if (!judges) return 5;", "if (Number.isNaN(bound)) return 5;",
        "browser/test_first_screen.py::test_the_confidence_of_the_network_holds_and_breaks_no_point",
    ),
    mutation(
        "a limit is asked for where points are judged", "report/page/js/controls.js",
        "byId(\"judging\").hidden = !judges;", "byId(\"judging\").hidden = false;",
        "browser/test_first_screen.py::test_a_limit_is_asked_for_where_points_are_judged[False]",
    ),
    Mutation(
        "a card judges no point by confidence", "report/page/js/card.js",
        (
            ("if (!judges || Number.isNaN", "if (Number.isNaN"),
            ("VERDICTS[states[point]]", "VERDICTS[states[point] % 3]"),
        ),
        "tests/browser/test_first_screen.py::test_the_confidence_of_the_network_holds_and_breaks_no_point",
    ),
    mutation(
        "a run of margins has a first screen", "report/chapters/overview/chapter.py",
        "(contents.tells_robustness or found.margins)", "contents.tells_robustness",
        "report/chapters/overview/test_overview_chapter.py::test_a_run_of_margins_says_how_near_the_next_prediction_is",
    ),
    mutation(
        "what a gesture opens is brought into view", "report/page/js/dom.js",
        "top + SEEN <= innerHeight) return false;", "top + SEEN <= Infinity) return false;",
        "browser/test_going.py::test_on_a_phone_a_point_of_the_list_shows_its_card_and_closing_it_the_list",
    ),
    mutation(
        "a selection is brought into view", "report/page/js/list.js",
        "if (bring(byId(STACKED.matches ? \"list\" : \"selected\")))", "if (innerWidth < 0)",
        "browser/test_going.py::test_on_a_phone_what_is_selected_on_the_first_screen_is_shown",
    ),
    mutation(
        "a point of the plot is brought into view", "report/page/js/scatter.js",
        "    bring(byId(\"card\"));\n", "",
        "browser/test_going.py::test_on_a_phone_a_point_of_the_plot_shows_its_card",
    ),
    mutation(
        "nothing glides where people object", "report/page/js/dom.js",
        "? \"auto\" : \"smooth\"", "? \"smooth\" : \"smooth\"",
        "browser/test_going.py::test_the_page_glides_only_where_people_do_not_object[True]",
    ),
    mutation(
        "the focus stays on what is drawn anew", "report/page/js/dom.js",
        "  if (!keep || held?.isConnected) return;\n", "  if (held) return;\n",
        "browser/test_going.py::test_the_focus_stays_on_what_is_drawn_anew",
    ),
    mutation(
        "numbers filter as they are typed", "report/page/js/controls.js",
        "    end.addEventListener(\"input\", later(filter, NUMBER_PAUSE));\n", "",
        "browser/test_selecting.py::test_numbers_filter_as_they_are_typed_and_what_is_left_is_said",
    ),
    mutation(
        "a limit that is none is told", "report/page/js/controls.js",
        "  byId(\"limit-told\").textContent = text;\n", "",
        "browser/test_first_screen.py::test_a_limit_that_is_none_is_told_and_the_last_one_stays[1.5]",
    ),
    mutation(
        "whole words are found first", "report/page/js/selection.js",
        "whole.includes(1) ?", "whole.includes(2) ?",
        "browser/test_selecting.py::test_whole_words_are_found_before_parts_of_words",
    ),
    mutation(
        "classes keep their order on the page", "report/page/js/overview.js",
        "other.all[2] / other.sum - one.all[2] / one.sum", "other.tally[2] / other.sum - one.tally[2] / one.sum",
        "browser/test_selecting.py::test_classes_keep_their_order_and_show_how_much_of_each_is_selected",
    ),
    mutation(
        "what is undecided now holds no longer", "report/page/js/state.js",
        "after: [\"undecided\", \"breaks\"] }", "after: [\"breaks\"] }",
        "browser/test_other_runs.py::test_every_change_has_its_word_and_its_points_whichever_run_is_on_show[B]",
    ),
    mutation(
        "changes are seen without another run on show", "report/page/js/selection.js",
        "columns[state.by].run || state.against", "columns[state.by].run",
        "browser/test_other_runs.py::test_every_change_has_its_word_and_its_points_whichever_run_is_on_show[this run]",
    ),
    mutation(
        "commands are those of the run on show", "report/page/js/overview.js",
        "runs[columns[state.by].run].next", "runs[0].next",
        "browser/test_other_runs.py::test_the_steps_are_those_of_the_run_on_show",
    ),
    mutation(
        "what attacks found is an upper bound on the card", "report/page/js/card.js",
        "return high === value && ", "return high === null && ",
        "browser/test_card.py::test_what_attacks_found_is_called_an_upper_bound",
    ),
    mutation(
        "small differences are magnified", "report/page/js/pictures.js",
        "times < MOST_TIMES", "times < 2",
        "browser/test_card.py::test_a_difference_is_magnified_by_what_it_can_bear",
    ),
    mutation(
        "wrong points leave right ones in sight", "report/page/js/scatter.js",
        "const TURNS = 16;", "const TURNS = 1;",
        "browser/test_room.py::test_wrong_points_do_not_cover_right_ones_where_both_are_many",
    ),
    mutation(
        "words under a plot end inside it", "report/page/js/paint.js",
        "pen.measureText(text).width <= room);", "room > 0);",
        "browser/test_room.py::test_words_of_a_plot_end_inside_it",
    ),
    mutation(
        "choices are read in full on a phone", "report/page/explore.css",
        "  .controls .whole select, .views .whole select { display: block; width: 100%; }\n",
        "  #explore select { max-width: 13rem; }\n",
        "browser/test_room.py::test_what_is_chosen_is_read_in_full_on_a_phone",
    ),
    mutation(
        "words of the list stay whole on a phone", "report/page/explore.css",
        "  #head, .row { font-size: .75rem; }\n", "",
        "browser/test_room.py::test_no_word_of_the_list_is_broken_on_a_phone",
    ),
    mutation(
        "what was put right is no warning", "report/page/render.py",
        "frozenset({\"train_mode\", \"log_softmax\"})", "frozenset({\"log_softmax\"})",
        "report/page/test_render.py::test_what_was_put_right_is_no_warning",
    ),
    mutation(
        "a table that the page saves holds no formula", "report/page/js/save.js",
        "GUARDED.test(text) ? `'${text}` : text;", "text;",
        "browser/test_hostile.py::test_a_saved_table_runs_nothing_and_brittle_reads_its_ids",
    ),
    mutation(
        "a table that the page saves holds the ids of the run", "report/page/js/save.js",
        r'shown(text.replaceAll("\\", "\\\\"))', "shown(text)",
        "browser/test_hostile.py::test_a_saved_table_runs_nothing_and_brittle_reads_its_ids",
    ),
    mutation(
        "a score that knows no noise decides nothing in a histogram", "report/chapters/distribution/bins.py",
        " if knows else [UNDECIDED] * len(values)", "",
        "report/chapters/distribution/test_bins.py::test_a_score_that_knows_no_noise_is_labelled_so_and_decides_nothing",
    ),
    mutation(
        "estimators are compared by p_robust", "report/chapters/other_runs/pair.py",
        '    if row["quantity"] != FLIP_PROBABILITY:\n', "    if row:\n",
        "report/chapters/other_runs/test_pair.py::test_a_run_beside_another_is_the_comparison",
    ),
    mutation(
        "a class of few points is not extreme by luck", "report/contents.py",
        'key=lambda row: row["high"])', 'key=lambda row: row["mean"])',
        "report/test_contents.py::test_a_class_of_few_points_is_not_extreme_by_luck",
    ),
    # Rare events.
    mutation(
        "questions of one limit are told apart", "report/chapters/decisions/chapter.py",
        "text if short.count(text) == 1 else column.label for", "text for",
        "report/chapters/decisions/test_chapter.py::test_columns_that_were_asked_the_same_are_told_apart",
    ),
)  # fmt: skip
