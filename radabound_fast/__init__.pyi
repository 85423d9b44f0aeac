from radabound_fast import bounds as bounds
from radabound_fast import mechanisms as mechanisms
from radabound_fast import spaces as spaces
from radabound_fast._answers import Answers as Answers
from radabound_fast._answers import RadaBoundAnswers as RadaBoundAnswers
from radabound_fast._exhausted import HoldoutExhausted as HoldoutExhausted
from radabound_fast._kernel import Answer as Answer
from radabound_fast._kernel import RadaBoundAnswer as RadaBoundAnswer
from radabound_fast.guard import RadaBound as RadaBound
from radabound_fast.holdout import Holdout as Holdout
from radabound_fast.packing import pack_losses as pack_losses
from radabound_fast.planning import Plan as Plan
from radabound_fast.planning import plan as plan
from radabound_fast.rademacher import RademacherAverage as RademacherAverage
from radabound_fast.signs import SignMatrix as SignMatrix

__version__: str
