from radabound_fast import bounds as bounds
from radabound_fast import metrics as metrics
from radabound_fast import spaces as spaces
from radabound_fast._kernels.guard import Answer as Answer
from radabound_fast._kernels.rows import PackedLosses as PackedLosses
from radabound_fast.guards.answers import Answers as Answers
from radabound_fast.guards.answers import HoldoutExhausted as HoldoutExhausted
from radabound_fast.guards.confirmed.search import ConfirmedSearch as ConfirmedSearch
from radabound_fast.guards.declared.search import DeclaredSearch as DeclaredSearch
from radabound_fast.guards.fixed_sequence import FixedSequence as FixedSequence
from radabound_fast.guards.gate.gate import Gate as Gate
from radabound_fast.guards.guess_and_check import GuessAndCheck as GuessAndCheck
from radabound_fast.guards.ladder import Ladder as Ladder
from radabound_fast.guards.radabound import RadaBound as RadaBound
from radabound_fast.holdout import Holdout as Holdout
from radabound_fast.holdout import Losses as Losses
from radabound_fast.planning import GatePlan as GatePlan
from radabound_fast.planning import Plan as Plan
from radabound_fast.planning import SearchPlan as SearchPlan
from radabound_fast.planning import plan as plan
from radabound_fast.pool.model_pool import ModelPool as ModelPool
from radabound_fast.rows.packing import pack_losses as pack_losses
from radabound_fast.rows.rounded import Rounded as Rounded
from radabound_fast.rows.signs import RademacherAverage as RademacherAverage
from radabound_fast.rows.signs import SignMatrix as SignMatrix

__version__: str
