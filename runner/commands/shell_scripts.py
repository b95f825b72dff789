"""Shell scripts for tab completion.

Each passes the line up to the cursor to ``runner completion query``.
"""

from __future__ import annotations

SCRIPTS = {
    "bash": r"""# runner: tab completion for bash; in ~/.bashrc:  eval "$(runner completion bash)"
_runner_complete() {
    local line=${COMP_LINE:0:COMP_POINT} word cut= candidate meaning
    word=${line##*[[:space:]]}
    # bash replaces only what follows the last of its word breaks, "=" among them.
    if [[ $COMP_WORDBREAKS == *=* && $word == *=* ]]; then cut=${word%"${word##*=}"}; fi
    COMPREPLY=()
    while IFS=$'\t' read -r candidate meaning; do
        COMPREPLY+=("${candidate#"$cut"}")
    done < <("$1" completion query "$line" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=./] ]]; then compopt -o nospace; fi
}
complete -o default -F _runner_complete runner
""",
    "zsh": r"""#compdef runner
# runner: tab completion for zsh; in ~/.zshrc, after compinit:  eval "$(runner completion zsh)"
_runner_complete() {
    local -a open open_shown closed closed_shown
    local candidate meaning
    while IFS=$'\t' read -r candidate meaning; do
        if [[ $candidate == *[=./] ]]; then
            open+=("$candidate"); open_shown+=("$candidate${meaning:+  -- $meaning}")
        else
            closed+=("$candidate"); closed_shown+=("$candidate${meaning:+  -- $meaning}")
        fi
    done < <("$words[1]" completion query "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null)
    (( $#open )) && compadd -Q -l -S '' -d open_shown -a open
    (( $#closed )) && compadd -Q -l -d closed_shown -a closed
    (( $#open + $#closed )) || _files
}
compdef _runner_complete runner
""",
    "fish": r"""# runner: tab completion for fish; once:  runner completion fish > ~/.config/fish/completions/runner.fish
function __runner_complete
    set -l line (commandline -cp | string collect)
    runner completion query "$line" 2>/dev/null
end
complete -c runner -f -a '(__runner_complete)'
""",
}
