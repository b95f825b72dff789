"""Each citation in Source lines is one entry of references.bib, identified by authors and year."""

import re

from components import registry
from runner.catalogue.declarations import catalogue
from runner.record.citations import BIBLIOGRAPHY, cited_entries, entries

WITHOUT = {"Forina et al. (1988)"}  # a program with an unavailable handbook


def keys(text):
    return {entry.key for entry in cited_entries(text)}


CITED = {
    "Liu & Wang (2016), Algorithm 1; Gallego (2021), eq. (2.4)": "gallego2021 liu2016",
    "Li et al. (2016), Algorithm 1": "li2016",  # not Li and Turner
    "Titsias and Ruiz (2019), section 2": "titsias2019",  # not Ruiz and Titsias
    "section 4 and Titsias and Ruiz (2019)": "titsias2019",
    "Hernández-Lobato & Adams (2015), the first": "hernandezlobato2015",  # "he" is not an author
    "Titsias and Lázaro-Gredilla (2014)": "titsias2014",  # accents in LaTeX notation
    "Terry, Black, Grammel et al. (2021)": "terry2021",
    "Gallego (2021), section 4.4.1 (after Leike et al. 2017)": "gallego2021 leike2017",
    "Betancourt (2017); Bardenet (2021)": "bardenet2021 betancourt2017",  # no year of another author
}


def test_citation_is_a_single_entry():
    assert {text: " ".join(sorted(keys(text))) for text in CITED} == CITED


def test_keys_are_unique_and_entries_are_cited_differently():
    keys = [entry.key for entry in entries()]
    assert len(keys) == len(set(keys))
    assert len(keys) == BIBLIOGRAPHY.read_text(encoding="utf-8").count("\n@") + 1


def test_every_source_of_a_component_has_its_entries():
    wrong = []
    for role in registry.ROLES:
        for entry in catalogue(role):
            text = entry.source
            for missing in WITHOUT:
                text = text.replace(missing, "")
            n_years = len(re.findall(r"\((?:1[89]|20)\d\d[a-z]?\b", text)) + len(
                re.findall(r"(?<!\() (?:19|20)\d\d\)", text)
            )
            if n_years != len(keys(text)):
                wrong.append(f"{role}/{entry.name}: {text}: {sorted(keys(text))}")
    assert wrong == []
