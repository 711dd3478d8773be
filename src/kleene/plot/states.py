"""The automaton, with how many runs came where: what `why` counts, written at states and edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any

from kleene.automaton.model import Automaton, Move
from kleene.automaton.svg import Counts, automaton_svg
from kleene.automaton.text import has_plain_edges
from kleene.call import Call
from kleene.explain import drawn_automaton
from kleene.ir.steps import is_steps
from kleene.markup.themes import recolored
from kleene.plan.plan import Plan
from kleene.plot.drawing import Size
from kleene.plot.figures import png_of
from kleene.plot.picture import Picture
from kleene.plot.scene import draw_scene, scene_of
from kleene.plot.thinning import plural
from kleene.why.answer import Why
from kleene.why.asking import why_of
from kleene.why.model import Kind

MOST_EVENTS, MOST_RUNS, MOST_TOLD = 20_000, 20_000, 100
_SUM = "Σ "
WITHOUT_STEPS = "runs of patterns in steps are not followed, so that nothing is counted"


def why_for(call: Call, events: Any, most_events: int = MOST_EVENTS, most_runs: int = MOST_RUNS) -> Why | None:
    """What became of the events; None for patterns in steps, whose runs are not followed."""
    return None if is_steps(call.definition) else why_of(call, events, None, None, most_events, most_runs, MOST_TOLD)


def automaton_picture(plan: Plan, why: Why | None, theme: str, size: Size) -> Picture:
    automaton = drawn_automaton(plan)
    counts = Counts() if why is None else _counts(automaton, why)
    caption = _caption(why, any(_SUM in text for text in counts.states.values()))
    drawn = automaton_svg(automaton, Counts(counts.states, counts.edges, (caption,)))
    scene = scene_of(drawn)
    width = size[0] if size[0] else int(scene.width) + 1
    height = size[1] or max(int(scene.height * width / scene.width), 1)
    svg = _titled(recolored(drawn, theme), caption, width, height)

    def png(scale: float) -> bytes:
        return png_of((width, height), scale, lambda figure: draw_scene(figure, scene, theme))

    return Picture("automaton", caption, theme, (width, height), svg, png)


def _caption(why: Why | None, has_sums: bool) -> str:
    if why is None:
        return WITHOUT_STEPS
    matches = plural(sum(one.runs for one in why.ended if one.name == Kind.MATCH), "match", "matches")
    looked = f"{matches} among {plural(why.events, 'event')}; {plural(why.runs_followed, 'run')} followed"
    sums = ["Σ is the count of a variable, whose states stand for it together"] if has_sums else []
    return "; ".join([looked, *sums, *(note for note in why.notes if not note.endswith("are told"))])


def _counts(automaton: Automaton, why: Why) -> Counts:
    reached = {one.name: one.runs for one in why.reached}
    matches = sum(one.runs for one in why.ended if one.name == Kind.MATCH)
    final = {automaton.final: _short(matches)}
    if has_plain_edges(automaton):
        return Counts(_at_states(automaton, reached) | final)
    return Counts(final, _at_edges(automaton, reached))


def _at_states(automaton: Automaton, reached: Mapping[str, int]) -> dict[int, str]:
    """Runs are counted by variable; one that stands twice in the pattern has one count for all of its states."""
    times = Counter(state.variable for state in automaton.states)
    found = {}
    for number, state in enumerate(automaton.states):
        if state.variable is not None and state.variable in reached:
            several = _SUM if times[state.variable] > 1 else ""
            found[number] = several + _short(reached[state.variable])
    return found


def _at_edges(automaton: Automaton, reached: Mapping[str, int]) -> dict[tuple[int, Move], str]:
    """An edge that selects an event was taken by the runs that have bound it last."""
    found = {}
    for number, edges in enumerate(automaton.edges):
        name = automaton.states[number].variable
        for edge in edges:
            states = {Move.BEGIN: (f"{name}", f"{name}[1]"), Move.TAKE: (f"{name}[i]",)}.get(edge.move, ())
            own = next((reached[state] for state in states if state in reached), None)
            if own is not None:
                found[number, edge.move] = plural(own, "run")
    return found


def _short(count: int) -> str:
    return f"{count:,}"


def _titled(svg: str, caption: str, width: int, height: int) -> str:
    opening, rest = svg.split(">", 1)
    view = opening[opening.index("viewBox") :]
    said = escape(f"automaton: {caption}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {view} aria-label="{said}">\n'
        f"<title>{said}</title>{rest}"
    )
