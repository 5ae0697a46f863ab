"""English function words that never name an entity on their own in a question."""

STOPWORDS = frozenset(
    """
    a about above after again against all also although always am among an and another any anybody
    anyone anything are aren't around as ask at away be because been before being below between
    both but by came can can't cannot come could couldn't did didn't do does doesn't doing don't
    done down during each either else ever every everyone everything few find for from further
    gave get gets give given go goes going gone got had has hasn't have haven't having he her here
    hers herself him himself his how however i i'd i'll i'm i've if in into is isn't it it's its
    itself just kind know known least less let like likely look made make makes making many may me
    might mine more most much must my myself name named near need neither never no nobody none nor
    not nothing now of off often on once one ones only onto or other others our ours out over own
    part perhaps please put rather really s said same say see seem she should shouldn't since so
    some somebody someone something sometimes soon such t take tell than that that's the their
    theirs them themselves then there there's these they they're this those though through thus to
    together too took toward towards true under until up upon us use used uses using usually very
    want wants was wasn't way we we're well went were weren't what what's when where where's
    whether which while who who's whom whose why will with within without won't would wouldn't yes
    yet you you're your yours yourself false
    """.split()
)
