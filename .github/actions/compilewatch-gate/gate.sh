#!/usr/bin/env bash
# Measure, judge against the base commit, comment the table on the pull request, end as the gate does:
# 0 nothing got worse, 1 a regression or a missed target, 2 cannot tell.
#
#   RUN_OPTIONS     options of `compilewatch run`, such as "--suite standard --until-decided --minutes 60", on one
#                   line or several, words with spaces in quotes; "none" judges what is stored of the checked out
#                   commit
#   GATE_OPTIONS    options of `compilewatch gate`, such as "--against torch=2.12.1"
#   PASS_UNDECIDED  "true": "cannot tell" passes
#   COMMENT_URL     where comments of the pull request are posted to; without it nothing is posted
#   COMMENT_HEADER  the header that lets them in, such as "Authorization: Bearer TOKEN"
#   GATE_TABLE      the file that gets the Markdown table; default gate.md
set -uo pipefail

table=${GATE_TABLE:-gate.md}

# The words of $2, one per line, split as a shell does, quotes and line ends included; nothing in it is run.
# $1 is what they are called.
words_of() {
    python3 -c '
import shlex, sys
name, text = sys.argv[1:]
try:
    print(*shlex.split(text), sep="\n")
except ValueError as error:
    sys.exit(f"{name}: {error}. Close the quote.")' "$@"
}

run_words=$(words_of RUN_OPTIONS "${RUN_OPTIONS:-}") || exit 2
gate_words=$(words_of GATE_OPTIONS "${GATE_OPTIONS:-}") || exit 2
run_options=() gate_options=()
[ -z "$run_words" ] || mapfile -t run_options <<< "$run_words"
[ -z "$gate_words" ] || mapfile -t gate_options <<< "$gate_words"

if [ "${run_options[0]:-}" != none ]; then
    compilewatch run ${run_options[@]+"${run_options[@]}"}
    code=$?
    # 1: a trial failed or a case got worse, which the gate says better.
    [ "$code" -le 1 ] || exit "$code"
fi

compilewatch gate --markdown ${gate_options[@]+"${gate_options[@]}"} > "$table"
verdict=$?
cat "$table"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$table" >> "$GITHUB_STEP_SUMMARY"

if [ -n "${COMMENT_URL:-}" ] && [ -s "$table" ]; then
    # The secret travels in a file descriptor: the list of processes shows arguments to everyone.
    # 65,536 characters is the most that GitHub takes.
    python3 -c '
import json, sys
text = sys.stdin.read()
if len(text) > 60_000:
    text = text[:60_000].rpartition("\n")[0] + "\n\n</details>\n\nThe rest is in the log of the job.\n"
json.dump({"body": text}, sys.stdout)' < "$table" |
        curl --silent --show-error --fail --output /dev/null --max-time 30 --retry 3 \
            --header @<(printf '%s\n' "${COMMENT_HEADER:-}") \
            --header "Content-Type: application/json" --data-binary @- "$COMMENT_URL" ||
        echo "The comment could not be posted; the verdict stands." >&2
fi

if [ "$verdict" -eq 2 ] && [ "${PASS_UNDECIDED:-}" = true ]; then
    verdict=0
fi
exit "$verdict"
