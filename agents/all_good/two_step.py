"""Best arm, then threshold: the two-step procedure of Mason, Jain, Tripathy & Nowak, NeurIPS 2020, section 1.3.

The paper names the two steps and leaves both algorithms open. Here both use the bounds of its section 3:

step 1      the best arm at delta / 2, by LUCB: pull h, the arm with the largest empirical mean, and the other arm with
            the largest upper bound, until the lower bound of h is above that
step 2      the arms above the threshold at delta / 2, by (ST)^2's lines 7 and 8, and beside them h: its bounds, less
            epsilon, are the bounds U and L on the threshold; stop when every other arm is above U or below L
symbols     m_i empirical mean, T_i pulls, C = C_{delta/2n}(T_i) = sigma sqrt(c ln(log2(2 T_i) 2n / delta) / T_i); gamma
            slack, which lowers U
departures  D1 ties go to the lowest arm
            D2 both steps use all samples, so that the answer is wrong with probability delta / 2 rather than delta
            D3 in the multiplicative form the factor applies to mean and width, as in `st2`

Where several arms are best it never stops, as there is no best arm to find.
"""

from bandit_envs.kernels import part

from ..core import trees
from ..core.confidence import tabulated
from ..core.declared import per_episode
from ..core.plans import planned
from ..core.trees import ESTIMATE, NEG_LOWER_IN, UPPER_OUT, extreme, lower, root, upper
from .st2 import ST2, answer_above, find_unknown, measure, settle


@part
def measure_best(ep, own, h):
    """The mean of h and its bounds."""
    m, C = ep.mean[h], tabulated(ep.pulls[h], own.level, own.factor, own.table)
    low, high = m - C, m + C
    if own.running:
        low, high = max(low, ep.now.low), min(high, ep.now.high)
    ep.now.mean, ep.now.low, ep.now.high = m, low, high


@part
def find_best(ep, own):
    """Step 1: h and its rival, or, if h is the best arm, that it is; then it leaves the tree."""
    tree = own.tree
    trees.settle_best(tree)
    h, rival = extreme(tree, NEG_LOWER_IN), extreme(tree, UPPER_OUT)  # one arm is inside
    ep.now.inside, ep.now.outside = h, rival
    if h >= 0 and (rival < 0 or upper(tree, rival) < lower(tree, h)):
        ep.now.top, ep.now.mean, ep.now.low, ep.now.high = h, root(tree, ESTIMATE), lower(tree, h), upper(tree, h)
        trees.leave_out(tree, h)
        trees.refresh(tree, h)


class TwoStep(ST2):
    """The best arm, then the arms above the threshold that it gives (Mason et al. 2020, section 1.3).

    Args:
        delta: None takes the task's; each step has half of it. bounds, and what it recommends: as for `st2`.
    """

    name, source = "two-step", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, section 1.3"
    shares = 2

    # What step 1 has found: the best arm is `top`, -1 while the step goes on; its mean and its bounds. The tree of step
    # 2 has all other arms.
    mean, low, high = per_episode(float), per_episode(float), per_episode(float)

    def observe(ep, own):
        """Take in the samples of the last round, and find the arms of the next one."""
        for i in planned(ep):
            if i == ep.now.top:
                measure_best(ep, own, i)
            else:
                measure(ep, own, i)
                trees.refresh(own.tree, i)
        if ep.now.top < 0:
            find_best(ep, own)
        if ep.now.top >= 0:
            settle(own, ep.now.mean)
            find_unknown(ep, own, ep.now.low, ep.now.high)

    def stops(ep, own):
        """The stopping rule: all other arms are known."""
        over = ep.now.top >= 0 and ep.now.inside < 0 and ep.now.outside < 0
        if over:
            answer_above(ep, own)
            own.answer[ep.now.top] = True
        return over
