"""A grid search over a pipeline whose scores on the holdout are proved for an adaptive analyst.

`GuessAndCheck` compares each candidate's cross-validation error with its holdout error and
charges for surprises only; `HoldoutSearchCV` makes the guesses from the training part.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from radabound_fast import GuessAndCheck
from radabound_fast.integrations.sklearn import HoldoutSearchCV

X, y = load_digits(return_X_y=True)
X_train, X_holdout, y_train, y_holdout = train_test_split(X, y, test_size=900, random_state=0)

check = GuessAndCheck(y_holdout, epsilon=0.1, delta=0.1)  # the labels stay in here

search = HoldoutSearchCV(
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": [0.1, 1, 10], "svc__gamma": [0.003, 0.01, 0.03]},
    guard=check,
    cv=3,
)
search.fit(X_train, y_train, X_holdout=X_holdout)

results = zip(search.cv_results_["params"], search.cv_results_["answer"], strict=True)
for params, error in results:
    print(f"{params}: {error:.3f}")
print(f"best: {search.best_params_}, error {search.best_answer_.value:.3f} +- {check.epsilon}")
print(f"{check.n_answered} answered, {check.failures} surprises, halted: {search.halted_}")
print(f"{check.affordable()} more like the last")
