"""Every mistake gives one clear line on stderr, exit code 2, and no work is done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from components import registry

GAME = "+experiment=friend_or_foe"
MOG = "+experiment=mog"
WORST = ["+experiment=digits_fgsm", "attacker=worst_case"]
WIENER = "+experiment=wiener_velocity"
SELECT, ONLINE = [WIENER, "inference=select_beta"], [WIENER, "inference=online_beta"]
SERIES = ["dataset=csv_series", "model=matern_sde", "inference=kalman", "tracking=false"]
VIS = ["dataset=funnel", "model=target_density", "inference=vis"]
UIVI = ["dataset=planar_toy", "model=target_density", "inference=uivi"]
CO2 = "+experiment=structural_co2"
MIXTURE = ["dataset=mixture_sim", "model=gaussian_mixture", "inference=cavi", "steps=2", "tracking=false"]
LINEAR = ["dataset=lgssm", "model=lgssm", "inference=kalman"]
MISTAKES = [
    # unknown keys
    ([GAME, "inference.alpah=0.1"], "inference.alpah: unknown key, did you mean inference.alpha?"),
    ([GAME, "seeed=1"], "seeed: unknown key, did you mean seed?"),
    ([GAME, "infrence.alpha=0.1"], "infrence: unknown key, did you mean inference?"),
    ([GAME, "+inference.alfa=1"], "inference.alfa: unknown key, did you mean alpha?"),
    ([GAME, "+sead=1"], "sead: unknown key, did you mean seed?"),
    ([GAME, "datset=friend_or_foe"], "datset: unknown key, did you mean dataset?"),
    # unknown components
    ([GAME, "inference=qlearning"], "inference=qlearning: no such inference, did you mean q_learning?"),
    ([GAME, "model=q_tabel"], "model=q_tabel: no such model, did you mean q_table?"),
    ([GAME, "dataset=friend_or_fo"], "dataset=friend_or_fo: no such dataset, did you mean friend_or_foe?"),
    (["+experiment=friend_of_foe"], "experiment=friend_of_foe: no such experiment, did you mean friend_or_foe?"),
    (["experiment=friend_or_foe"], "experiment=friend_or_foe: write it with a plus sign, +experiment=friend_or_foe"),
    (["dataset=friend_or_foe"], "model, inference: not chosen; pick an experiment (runner +experiment=sarcos_mdgp; "
     "runner list experiment names them) or set model=… inference=…"),
    ([GAME, "attacker=null"], "attacker=null: choose an attacker by name, or leave it out with ~attacker"),
    ([GAME, "plugins=[nonsuch.module]"], "plugins: no module 'nonsuch.module' (No module named 'nonsuch'); "
     "is its folder on PYTHONPATH?"),
    # wrong types and ranges
    ([GAME, "inference.alpha=fast"], "inference.alpha=fast: must be a number"),
    ([GAME, "inference.alpha=2"], "inference.alpha=2: out of range, must be ≤ 1"),
    ([GAME, "steps=-5"], "steps=-5: out of range, must be > 0"),
    ([GAME, "steps=2.5"], "steps=2.5: must be an integer"),
    ([GAME, "steps=25e-1"], "steps=2.5: must be an integer"),
    ([GAME, "steps=6e3"], "steps=6000: dataset=friend_or_foe has only 5000"),
    ([GAME, "seed=-1"], "seed=-1: out of range, must be ≥ 0"),
    ([GAME, "smoke=maybe"], "smoke=maybe: must be true or false"),
    ([GAME, "plugins=mine"], "plugins=mine: must be a list [a, b, …]"),
    ([GAME, "dtype=float46"], "dtype=float46: not one of float64 | float32, did you mean float64?"),
    ([GAME, "debug=profil"], "debug=profil: not one of overfit | profile, did you mean profile?"),
    ([GAME, "device=gpu"], "device=gpu: must be cpu, cuda, or one of several GPUs (cuda:0, cuda:1, …)"),
    ([GAME, "validation=0.2"], "validation=0.2: holds out training rows, and dataset=friend_or_foe (game) has none; "
     "leave it out"),
    (["+experiment=digits_fgsm", "validation=1"], "validation=1: out of range, must be < 1"),
    (["+experiment=multitask_toy", "smoke=true", "validation=0.99"], "validation=0.99: leaves none of 40 training rows to "
     "learn from; lower it"),
    ([GAME, "replicates=0"], "replicates=0: out of range, must be > 0"),
    ([GAME, "steps=6000"], "steps=6000: dataset=friend_or_foe has only 5000"),
    ([GAME, "plugins=[3]"], "plugins: 3 is no module's name, such as my_module"),
    ([GAME, "plugins=[walk.py]"], "plugins: 'walk.py' is a file; write the module's name, walk"),
    ([GAME, "seed=???"], "seed: Missing mandatory value: seed"),
    ([GAME, "output_dir=${nowhere}"], "output_dir: Interpolation key 'nowhere' not found"),
    (["+experiment=stopping_rule", "inference.n_max=0"], "inference.n_max=0: out of range, must be ≥ 1"),
    (["+experiment=stopping_rule", "smoke=true", "inference.tails=100"], "inference.tails=100: they do not come within "
     "inference.n_max=60 tosses; lower the one or raise the other"),
    (["+experiment=stopping_rule", "smoke=true", "dataset.heads=0", "dataset.tails=0"], "dataset.heads=0, dataset.tails=0: "
     "there is no toss; give at least one"),
    (["+experiment=posterior_concentration", "inference.numbers=[64, 32]"], "inference.numbers: [64, 32] must increase"),
    (["+experiment=posterior_concentration", "model=linear_regression"], "inference=posterior_concentration needs "
     "linear_smoother, which model=linear_regression lacks as configured; set model.noise to a number"),
    (["+experiment=dp_mixture", "model.concentration=0"], "model.concentration=0: out of range, must be > 0"),
    # parts that do not fit
    ([GAME, "inference=sgld"], "inference=sgld has no use for a game problem; inference that fits model=q_table: "
     "fpq_learning, "),
    ([GAME, "model=target_density"], "model=target_density does not fit dataset=friend_or_foe (a game problem); "
     "models that do: q_linear, q_network, q_table"),
    ([GAME, "~attacker"], "attacker: dataset=friend_or_foe is a game and needs an adversary; there are: "
     "exponential_smoother"),
    ([GAME, "attacker=fgsm"], "attacker=fgsm cannot attack a game problem (dataset=friend_or_foe); attackers that can: "
     "exponential_smoother"),
    ([GAME, "debug=overfit", "tracking=false"], "debug=overfit: needs a supervised problem, dataset=friend_or_foe is a game"),
    (["+experiment=digits_fgsm", "model=irf", "inference=fit"], "attacker=fgsm follows a gradient, and model=irf has "
     "none; attackers that need none: "),
    (["+experiment=sarcos_mann2_as_published", "attacker=fgsm"], "attacker=fgsm needs binary or classes labels, those "
     "of dataset=sarcos are real"),
    (["+experiment=digits_fgsm", "model=q_table"], "model=q_table does not fit dataset=digits (a supervised problem); "
     "models that do: cnn, mann2, "),
    (["+experiment=digits_fgsm", "inference=dsvi"], "inference=dsvi needs elbo, which model=mlp lacks; inference that fits "
     "model=mlp: aadm, adam_noise, "),
    ([MOG, "side_by_side=true"], "side_by_side=true: is for supervised data, and dataset=mixture_of_gaussians_2d is a density "
     "problem; leave it out"),
    (["+experiment=aadm_uci", "inference=map", "model.biases=random", "model.prior_std=1.0", "side_by_side=true"],
     "side_by_side=true: inference=map computes one replicate after the other; leave it out, or use one of: aadm, avb"),
    (["+experiment=aadm_classification", "attacker=fgsm", "side_by_side=true"], "side_by_side=true: attacker=fgsm evades one "
     "posterior at a time, there would be one of each replicate; leave one of them out"),
    (["+experiment=aadm_uci", "inference.alphas=[0.1,1]"], "inference=aadm: several posteriors (0.1, 1) are learnt side by "
     "side; add side_by_side=true, or ask for one"),
    (["+experiment=aadm_uci", "inference.alphas=[0.1,2]"], "inference.alphas.1=2: out of range, must be ≤ 1"),
    (["+experiment=aadm_uci", "inference.alphas=[0.1,0.1]"], "inference.alphas: one of them occurs twice; name each once"),
    # components inside components
    ([*WORST, "attacker.members=[fgsm,pdg]"], "attacker.members.1=pdg: no such attacker, did you mean pgd?"),
    ([*WORST, "attacker.members=[{name: pgd, stepz: 3}]"], "attacker.members.0.stepz: unknown key, did you mean steps?"),
    ([*WORST, "attacker.members=[{steps: 3}]"], "attacker.members.0: must be chosen by name"),
    ([*WORST, "attacker.members=[fgsm,word_flip]"], "attacker.members.1=word_flip attacks binary inputs, those of "
     "dataset=digits are continuous; attackers that fit: bim, "),
    ([*WORST, "attacker.members=[fgsm,cw]"], "attacker.members: cw is bounded in l2, the worst case in linf; use norm=l2 for "
     "all, or leave cw out"),
    ([*WORST, "attacker.members=[gaussian_contamination]"], "attacker.members.0=gaussian_contamination cannot attack a "
     "supervised problem (dataset=digits); attackers that can: "),
    ([*WORST, "model=irf", "inference=fit"], "attacker.members.0=fgsm follows a gradient, and model=irf has none"),
    (["+experiment=digits_fgsm", "attacker=transfer", "attacker.inference=dsvi"], "attacker.surrogate: inference=dsvi needs "
     "elbo, which model=mlp lacks"),
    (["+experiment=digits_fgsm", "attacker=transfer", "attacker.surrogate=irf", "attacker.inference=fit"],
     "attacker.attack=pgd follows a gradient, and model=irf has none"),
    (["+experiment=digits_fgsm", "inference=adversarial_training", "inference.training_attacker=word_flip"],
     "inference.training_attacker=word_flip attacks binary inputs"),
    (["+experiment=digits_fgsm", "inference=adversarial_training", "~attacker"], "attacker: inference=adversarial_training "
     "trains against an attacker"),
    (["+experiment=digits_fgsm", "inference=adversarial_training", "inference.training_attacker=pgd",
      "inference.training_attacker.stepps=7"], "inference.training_attacker.stepps: unknown key, did you mean steps?"),
    ([*WORST, "attacker.members=[fgsm,pgd]", "attacker.members.1.stepz=7"], "attacker.members.1.stepz: unknown key, did you "
     "mean steps?"),
    (["+experiment=digits_fgsm", "inference=adversarial_training", "inference.training_attacker=pgd", "seeed=1",
      "inference.training_attacker.steps=7"], "seeed: unknown key, did you mean seed?"),
    ([GAME, "inference.policy.steps=7"], "inference.policy.steps: unknown key"),
    ([GAME, "inference=wolf_phc", "inference.delta_win=0.5"], "inference.delta_win: 0.5 must not exceed delta_lose, 0.01"),
    ([GAME, "inference=friend_or_foe_q", "inference.opponents=enemy"], "inference.opponents=enemy: not one of friend | foe"),
    ([GAME, "gradient=reparam"], "gradient=reparam: a gradient is a part of another component; give it to one, such as "
     "inference.gradient=reparam"),
    ([GAME, "+gradient=reparam"], "gradient=reparam: a gradient is a part of another component; give it to one, such as "
     "inference.gradient=reparam"),
    ([GAME, "block=seasonal"], "block=seasonal: a block is a part of another component; give it to one, such as "
     "model.blocks=[seasonal]"),
    ([CO2, "model.blocks=[local_levl]"], "model.blocks.0=local_levl: no such block, did you mean local_level?"),
    ([CO2, "model.blocks=[{name: seasonal, perod: 3}]"], "model.blocks.0.perod: unknown key, did you mean period?"),
    ([CO2, "model.blocks=[]"], "model.blocks=[]: list should have at least 1 item after validation, not 0"),
    ([CO2, "model.blocks=[{name: regression, inclusion: {a: 2.0}}]"], "model.blocks.0.inclusion.a=2.0: out of range, must be "
     "≤ 1"),
    # samplers
    ([MOG, "steps=300"], "inference.burn_in=500: no draw would be kept in steps=300; raise steps, or lower inference.burn_in"),
    ([MOG, "inference=hmc", "steps=500"], "inference.warmup=500: no draw would be kept in steps=500; raise steps, or lower "
     "inference.warmup"),
    ([*VIS, "inference.refine_steps=-1"], "inference.refine_steps=-1: out of range, must be ≥ 0"),
    ([*VIS, "inference.kernel=svgd"], "inference.n_samples: particles of svgd see each other: at least 2; got 1"),
    ([*VIS, "inference.kernel=sgld_r"], "inference.n_samples: particles of sgld_r see each other: at least 2; got 1"),
    ([*VIS, "inference.kernel=sgd", "inference.entropy=fokker_planck"], "inference.n_samples: particles of fokker_planck see "
     "each other: at least 2; got 1"),
    ([*VIS, "inference.entropy=jacobian"], "inference.entropy: jacobian is of a deterministic flow, and asks for kernel=sgd; "
     "got sgld"),
    ([*VIS, "inference.kernel=sgd", "inference.entropy=joint"], "inference.entropy: joint needs a kernel with a density, sgld "
     "or sgld_r; got sgd"),
    ([*VIS, "inference.q0=point", "inference.entropy=gaussian"], "inference.entropy: gaussian needs a q0 with a density, "
     "gaussian; got point"),
    ([*VIS, "inference.learn_eta=true", "inference.differentiate=fast"], "inference.learn_eta: with differentiate=fast no "
     "gradient reaches η; use differentiate=full"),
    ([*VIS, "inference.eta=[0.1,-0.2]"], "inference.eta=[0.1, -0.2]: must be a number"),
    ([*VIS, "inference.eta=[0.1,0.2,0.3]", "dataset.dim=2", "steps=5"], "inference.eta: 3 step sizes of 2 coordinates; "
     "give one, or 2 in their order"),
    (["+experiment=local_level", "inference=vis"], "inference=vis needs forecasts_series, log_joint, which "
     "model=local_level lacks"),
    (["dataset=alternating", "model=dlm", "inference=vis", "steps=2"], "model=dlm: is for numbers, and "
     "dataset=alternating has a series of classes; models that fit: hmm"),
    (["dataset=dlm_sim", "model=hmm", "inference=vis"], "model=hmm assumes categorical_series of what made the data, which "
     "dataset=dlm_sim is not; models that fit: dlm"),
    (["dataset=dlm_sim", "model=dlm", "inference=sgld"], "inference=sgld has no use for a sequence problem"),
    (["dataset=dlm_sim", "model=dlm", "inference=kalman"], "inference=kalman needs linear_gaussian, which model=dlm lacks"),
    ([*VIS, "inference.infer_steps=-1"], "inference.infer_steps=-1: out of range, must be ≥ 0"),
    ([*VIS, "inference.kernel=sgd", "inference.entropy=jacobian", "dataset.dim=200", "steps=5"],
     "inference.entropy=jacobian: the Hessian of 200 parameters at every step, "
     "more than 100; take another entropy, or inference=gaussian_vi"),
    (["+experiment=aadm_toy", "inference.alpha=0"], "inference.alpha=0: out of range, must be > 0"),
    (["+experiment=aadm_toy", "inference.alpha=1.5"], "inference.alpha=1.5: out of range, must be ≤ 1"),
    (["+experiment=aadm_toy", "inference.n_samples=1"], "inference: one draw has no variance to match; set "
     "inference.n_samples to 2 or more"),
    ([*UIVI, "inference=ksivi", "inference.n_samples=3", "inference.pairs=two_batches"], "inference.n_samples: pairs of draws "
     "need 2 or more, two_batches an even number"),
    ([*UIVI, "inference.target_acceptance=1"], "inference.target_acceptance=1: out of range, must be < 1"),
    (["+experiment=digits_fgsm", "model=irf", "inference=sivi"], "inference=sivi needs log_joint, which model=irf lacks; "
     "models that fit the rest: bnn, cnn, "),
    (["+experiment=digits_fgsm", "model=irf", "inference=sivi", "~attacker"], "inference=sivi needs log_joint, which "
     "model=irf lacks; inference that fits model=irf: fit"),
    (["+experiment=cvae_vis", "inference=hmc"], "inference=hmc needs log_joint, which model=cvae lacks; inference that fits "
     "model=cvae: dsvi, lbfgs, vi, vis"),
    (["+experiment=cvae_vis", "inference.proposal=prior"], "inference.proposal=prior: not one of guide | laplace"),
    (["+experiment=dvae_digits", "inference=vis"], "inference=vis needs latent_variable, which model=dvae lacks; inference "
     "that fits model=dvae: vi"),
    (["+experiment=dvae_digits", "dataset.proposal=laplace"], "dataset.proposal=laplace needs latent_variable, which "
     "model=dvae lacks; use dataset.proposal=guide"),  # its gradient is for discrete ones: no vae
    (["+experiment=vae_digits", "dataset.ais_temperatures=-1"], "dataset.ais_temperatures=-1: out of range, must be ≥ 0"),
    ([MOG, "inference.thinning=600"], "inference.thinning=600: no draw would be kept of the 500 steps after "
     "inference.burn_in=500; raise steps, or lower inference.thinning"),
    ([MOG, "dataset.start_mean=[1e200,0]", "tracking=false"], "replicate 1 cannot start: log density or its gradient is not "
     "finite where chains [0, 1, "),
    (["+experiment=sarcos_irf", "inference=sgld"], "inference=sgld needs log_joint, which model=irf lacks; inference that "
     "fits model=irf: fit"),
    # closed-form variational inference
    ([*MIXTURE, "model.clusters=0"], "model.clusters=0: out of range, must be > 0"),
    ([*MIXTURE, "dataset.n_train=2"], "model.clusters=3: dataset=mixture_sim has 2 training rows; lower it"),
    ([*MIXTURE, "model.freedom=1"], "model.freedom=1: rows of 2 values need more than 1; raise it, or leave it null"),
    ([*MIXTURE, "model=normal_gamma"], "model=normal_gamma: is of one value a row, and dataset=mixture_sim has several "
     "values a row; models that fit: dp_mixture, gaussian_mixture"),
    (["+experiment=cavi_normal", "model.kappa=-1"], "model.kappa=-1: out of range, must be > 0"),
    (["+experiment=cavi_normal", "inference=em"], "inference=em needs point_masses, which model=normal_gamma lacks; "
     "inference that fits model=normal_gamma: "),
    (["+experiment=cavi_probit", "model=logistic_regression", "model.prior=laplace"], "inference=cavi needs "
     "coordinate_ascent, which model=logistic_regression lacks as configured; set model.prior=gaussian; "),
    (["+experiment=cavi_probit", "dataset=digits"], "model=probit_regression has no likelihood for the classes labels of "
     "dataset=digits; models that do: "),
    (["+experiment=cavi_probit", "dataset=digits", "model=logistic_regression"], "inference=cavi: the bound of "
     "model=logistic_regression is for two classes, and there are 10; use inference=gaussian_vi"),
    (["+experiment=bbvi_logistic", "inference.family=flow"], "inference.gradient=rao_blackwell needs factored_guide, which "
     "the q(θ) of inference=bbvi lacks; gradients that fit it: "),
    # sequences
    ([WIENER, "inference.beta=-0.1"], "inference.beta=-0.1: out of range, must be ≥ 0"),
    ([WIENER, "dataset.noise_sd=0"], "dataset.noise_sd=0: out of range, must be > 0"),
    ([*SELECT, "inference.betas=[]"], "inference.betas=[]: list should have at least 1 item after validation, not 0"),
    ([*SELECT, "inference.betas=[-0.1,0.1]"], "inference.betas.0=-0.1: out of range, must be ≥ 0"),
    ([*SELECT, "inference.betas=[0.1,0.1]"], "inference.betas: [0.1, 0.1] must increase"),
    ([*SELECT, "inference.betas=[0.1,1.5]"], "inference.betas: 1.5 is no β of beta_bootstrap_filter (input should be less than "
     "or equal to 1)"),
    ([*SELECT, "inference.filter=kalman"], "inference.filter: kalman has no β to choose; use beta_bootstrap_filter"),
    ([*SELECT, "inference.share=0"], "inference.share=0: out of range, must be > 0"),
    ([*SELECT, "model=contaminated_ssm"], "inference.filter=beta_bootstrap_filter needs power_integral, which "
     "model=contaminated_ssm lacks; models that can: lgssm, linear_gaussian_ssm, "),
    ([*ONLINE, "inference.first_beta=0.3"], "inference.first_beta: 0.3 is not one of betas, [0.0, "),
    ([WIENER, "attacker=sensor_stuck", "model=contaminated_ssm", "inference=bootstrap_filter"], "model=contaminated_ssm needs "
     "noise_law of whoever attacks, which attacker=sensor_stuck lacks; attackers that have it: gaussian_contamination, "),
    ([*LINEAR, "dataset.Sigma=[[-1.0]]"], "dataset.Sigma: not positive definite; a covariance has eigenvalues > 0"),
    ([*LINEAR, "dataset.H=[[1.0]]"], "dataset.H: is 1 × 1, must be dy × dx = 1 × 2, for dx = 2 (columns of A) and dy = 1 (rows "
     "of H)"),
    ([*LINEAR, "model.H=[[1.0],[1.0]]", "model.A=[[0.9]]", "model.Q=[[1.0]]", "model.Sigma=[[1.0,0.0],[0.0,1.0]]",
      "model.m0=[0.0]", "model.P0=[[1.0]]", "tracking=false"], "model.H: has 2 rows, dataset=lgssm "
     "observes 1 numbers at a time"),
    (["dataset=csv_series", "model=matern_sde", "inference=kalman"],
     "dataset.path: not given; name a file, whole or inside data_dir"),
    # a number, where a word would do too
    (["+experiment=posterior_quality", "model.prior_std=-1"], "model.prior_std=-1: out of range, must be > 0"),
    # more replicates than splits
    (["+experiment=aadm_uci", "replicates=21"], "replicates=21: dataset=uci_regression has here 20 splits or folds, one to "
     "each; set replicates to at most that"),
    # scores by name
    ([GAME, "objective=rewrad"], "objective=rewrad: no such score of this run, did you mean reward?"),
    ([MOG, "objective=nlpp"], "objective=nlpp: no such score of this run; there are: acceptance, divergences, "),
    # well written, and not what can be meant
    ([GAME, "seed=0,1"], "seed=0,1: several values are a sweep; add -m to run one after the other; a list is written "
     "'seed=[…]'"),
    ([GAME, "inference=q_learning,level_k"], "inference=q_learning,level_k: several values are a sweep; add -m to run one "
     "after the other"),
    ([GAME, "inference=[q_learning,level_k]"], "inference=[q_learning,level_k]: a run has one inference; "
     "-m inference=q_learning,level_k runs one after the other"),
    ([GAME, MOG], "experiment: given twice (friend_or_foe, mog), a run has one; -m +experiment=friend_or_foe,mog runs one "
     "after the other"),
    ([GAME, "hydra/launcher=joblib"], "hydra/launcher=joblib: serves a sweep, and this is one run; add -m, or leave it out"),
    ([GAME, "hydra/sweeper=optuna", "hydra.sweeper.n_trials=3"], "hydra/sweeper=optuna: serves a sweep, and this is one run; "
     "add -m, or leave it out"),
    ([GAME, "hydra/launcher=ray"], "hydra/launcher=ray: not installed; pip install -e '.[ray]'"),
    (["-m", GAME, "hydra/launcher=ray", "seed=0,1"], "hydra/launcher=ray: not installed; pip install -e '.[ray]'"),
    (["-m", GAME, "seed=0,1", "inference=nonsuch"], "inference=nonsuch: no such inference; there are: "),
    ([MOG, "attacker.eps=[0.1]"], "attacker.eps: no attacker is chosen; choose one too, attacker=… (runner list attacker names "
     "them)"),
    ([GAME, "~modle"], "~modle: there is nothing of that name to leave out, did you mean ~model?"),
    ([GAME, "~seed"], "seed: missing; give it a value"),
    ([GAME, "=3"], "=3: no key before the equals sign; write key=value"),
    ([GAME, "@x=3"], "@x=3: no key before the equals sign; write key=value"),
    ([GAME, "+seed=1"], "+seed: is there already; write seed=…"),
    ([GAME, "seed="], "seed=: must be an integer"),
    ([GAME, "steps=1e400"], "steps=inf: must be an integer"),
    (["+experiment=../mog"], "experiment=../mog: no such experiment, did you mean mog?"),
    (["--config-dir", "nodir", GAME], "--config-dir nodir: no such folder"),
    (["--config-dir=nodir", GAME], "--config-dir nodir: no such folder"),
    ([GAME, "--config-dir"], "--config-dir: give it a folder of YAML files, --config-dir conf"),
    # code of others, and what a config may not read
    ([GAME, "+hydra.callbacks.x._target_=os.getcwd"], "hydra.callbacks.x: the runner calls nothing that a config names; "
     "register a component of yours with plugins=[…]"),
    (["-m", GAME, "seed=0,1", "+hydra.callbacks.x._target_=os.getcwd"], "hydra.callbacks.x: the runner calls nothing that a "),
    (["-m", GAME, "seed=0,1", "hydra.launcher._target_=os.getcwd"], "hydra.launcher._target_=os.getcwd: not of an installed "
     "plug-in of Hydra; choose one with hydra/launcher=…"),
    (["-m", GAME, "seed=0,1", "hydra.sweeper._target_=os.getcwd"], "hydra.sweeper._target_=os.getcwd: not of an installed "
     "plug-in of Hydra; choose one with hydra/sweeper=…"),
    ([GAME, "+hydra.job_logging.handlers.x.class=os.system"], "hydra.job_logging.handlers.x.class=os.system: logging is built "
     "from Python's own classes alone; leave it out"),
    ([GAME, "+model._target_=os.getcwd"], "model._target_=os.getcwd: nothing is built from a _target_; choose a component by "
     "name, register yours with plugins=[…]"),
    ([GAME, "output_dir=${oc.env:HOME}"], "output_dir: oc.env:HOME: a config may read variables named RUNNER_… alone; set "
     "RUNNER_HOME and read that"),
    ([GAME, "output_dir=${oc.env:RUNNER_NONSUCH}"], "output_dir: oc.env:RUNNER_NONSUCH: not set in the environment"),
    ([GAME, "hydra.run.dir=elsewhere"], "hydra.run.dir=elsewhere: runs are recorded under output_dir; set output_dir=…"),
    ([GAME, "hydra.mode=FOO"], "hydra.mode=FOO: Invalid value 'FOO', expected one of [RUN, MULTIRUN]"),
    # Hydra's own
    ([GAME, "hydra.launcher.n_jobs=2"], "hydra.launcher.n_jobs: the basic launcher has no such key; choose one with "
     "hydra/launcher="),
    ([GAME, "inference.alpha='1"], "inference.alpha='1: not an override"),
    ([GAME, "inference.alpha=[1"], "inference.alpha=[1: not an override"),
    (["--nonsuch", GAME], "unrecognized arguments: --nonsuch; runner --hydra-help tells the flags"),
    (["--cfg", "jobs", GAME], "argument --cfg/-c: invalid choice: 'jobs' (choose from "),
    (["fetch"], "fetch: neither a command nor an override"),
    (["reprot", "sarcos_table"], "reprot: neither a command nor an override, did you mean report?"),
    # sub-commands
    (["list", "modle"], "modle: no such role, did you mean model?"),
    (["list", "--plugin", "nonsuch"], "--plugin: no module 'nonsuch' (No module named 'nonsuch'); is its folder on "
     "PYTHONPATH?"),
    (["show", "inference/q_lerning"], "inference/q_lerning: no such inference, did you mean q_learning?"),
    (["show", "nonsuch"], "nonsuch: nothing has that name (see runner list)"),
    (["show"], "runner show: the following arguments are required: what; runner show --help tells more"),
    (["show", "mog", "--config-dir", "nodir"], "--config-dir nodir: no such folder"),
    (["study", "sarcos_tabel"], "study sarcos_tabel: no such study, did you mean sarcos_table?"),
    (["study", "moe_evolution", "--jobs", "0"], "--jobs 0: must be ≥ 1"),
    (["study", "moe_evolution", "--jobs", "many"], "runner study: argument --jobs: invalid int value: 'many'; runner study "
     "--help tells more"),
    (["study", "moe_evolution", "seeed=1"], "study moe_evolution: no run can be composed; the first one: seeed: unknown key"),
    (["study", "moe_evolution", "objective=nlpp"], "study moe_evolution: no run can be composed; the first one: "
     "objective=nlpp: no such score of this run; there are: "),
    (["study", "moe_evolution", "--only", "modle=x"], "--only modle=…: no such key, did you mean model?"),
    (["study", "moe_evolution", "--only", "label"], "--only label: write a key and its values, --only model=igp"),
    (["study", "moe_evolution", "--as", "../x"], "study='../x': leads out of its folder; give a plain name"),
    (["study", "nonsuch.yaml"], "study nonsuch.yaml: no such study"),
    (["rerun", "moe_evolution"], "rerun: say which runs with --failed"),
    (["rerun", "--failed", "moe_evolution"], "study moe_evolution was never launched under "),
    (["report", "moe_evolutoin"], "study moe_evolutoin: no such study, did you mean moe_evolution?"),
    (["report", "moe_evolution", "--with", "nonsuch.csv"], "--with nonsuch.csv: cannot be read (No such file or directory)"),
    (["resume", "3f2a"], "3f2a: no such run under outputs (a folder, or the beginning of a signature)"),
    (["resume"], "runner resume: the following arguments are required: run; runner resume --help tells more"),
    (["compare", "3f2a"], "compare: give two runs or more, not 1"),
    (["compare", "3f2a", "91bc"], "3f2a: no such run under outputs (a folder, or the beginning of a signature)"),
    (["sync", "3f2a"], "3f2a: no such run under outputs (a folder, or the beginning of a signature)"),
    (["completion", "tcsh"], "completion: tcsh is not one of bash, zsh, fish"),
    (["data", "fetsh"], "runner data: argument action: invalid choice: 'fetsh' (choose from "),
    (["ui", "--port", "http"], "runner ui: argument --port: http: must be a port, 1 to 65535; runner ui --help tells more"),
    (["doctor", "--nonsuch"], "runner doctor: unrecognized arguments: --nonsuch; runner doctor --help tells more"),
]  # fmt: skip


OWN = ["--config-dir", "conf", MOG]
FILES = {
    "conf/inference/walk.yaml": "name: walk\nchains: 10\n",
    "conf/inference/broken.yaml": "name: mala\nchains: [1\n",
    "conf/inference/mala.yaml": "name: mala\n",
    "conf/experiment/list.yaml": "- mog\n",
    "conf/experiment/latin.yaml": "description: caf\xe9\n",
    "conf/experiment/lost.yaml": "# @package _global_\ndefaults:\n  - mog\n  - override /inference: malla\n",
    "conf/experiment/calls.yaml": "# @package _global_\nhydra:\n  callbacks:\n    x: {_target_: os.getcwd}\n",
    "conf/study/torn.yaml": "name: torn\nrows: [\n",
    "conf/study/other.yaml": "- a\n",
    "conf/study/short.yaml": "name: short\ndescription: no rows\ntables: []\n",
    "conf/published/torn.yaml": "name: torn\nvalues: {a: {b: many}\n",
    "conf/study/lost.yaml": "{name: lost, description: d, rows: [{label: a, model: m, preset: ''}], tables: [{name: t, "
    "title: t, columns: {a: b}, better: lower, published: torn}]}\n",
    "scores.csv": "table,row\nt,a\n",
    "nothing.csv": "",
    "names.csv": "y\n",
    "infinite.csv": "y\n1.5\ninf\n",
    "outputs/mog/aaaa/run.json": '{"state": "interrupted"}',
    "outputs/mog/aaaa/config.yaml": "experiment: mog\nseed: [1\n",
    "outputs/mog/bbbb/run.json": '{"state": "interrupted"}',
    "outputs/mog/bbbb/config.yaml": "seed: 1\n",
    "outputs/mog/cccc/run.json": '{"state": "interrupted"}',
    "outputs/mog/dddd/run.json": '{"state": "interrupted"}',
    "outputs/mog/dddd/config.yaml": "experiment: ../../mog\nplugins: [nonsuch]\n",
    "outputs/studies/moe_evolution/snapshot.yaml": "name: moe_evolution\nruns: [{name: a}\n",
    "outputs/studies/moe_mog_table/snapshot.yaml": "name: moe_mog_table\nruns: [{name: a}]\n",
    "misspelt.py": "import os\n\ndef f(:\n",
    "raising.py": "import os\n\n\ndef f():\n    return 1 / 0\n\n\nf()\n",
    "lacking.py": "import nonsuch_package\n",
    "leaving.py": "raise SystemExit('bye')\n",
    "taken.py": "from components.registry import register\n\n\n@register('inference', 'twice')\nclass A: ...\n\n\n"
    "@register('inference', 'twice')\nclass B: ...\n",
}  # fmt: skip
# In a folder with these files, which is on the path.
WITH_FILES = [
    ([*OWN, "inference=walk"], "inference=walk: conf/inference/walk.yaml is there, its class is not; name the module that "
     "registers it, plugins=[…]"),
    ([*OWN, "inference=wolk"], "inference=wolk: no such inference, did you mean walk?"),
    ([*OWN, "inference=broken"], "conf/inference/broken.yaml, line 3: this is no YAML (expected ',' or ']', but got "),
    (["--config-dir", "conf", "+experiment=list"], "conf/experiment/list.yaml: must hold keys and their values"),
    (["--config-dir", "conf", "+experiment=latin"], "conf/experiment/latin.yaml: this is no text in UTF-8 (byte 16)"),
    (["--config-dir", "conf", "+experiment=lost"], "inference=malla, which experiment=lost asks for: no such inference, did "
     "you mean mala?"),
    (["--config-dir", "conf", "+experiment=calls"], "hydra.callbacks.x: the runner calls nothing that a config names; "),
    ([*OWN, "inference=walk", "inference.chains=many", "seeed=1"], "seeed: unknown key, did you mean seed?"),
    (["study", "torn", "--config-dir", "conf"], "conf/study/torn.yaml, line 3: this is no YAML ("),
    (["study", "other", "--config-dir", "conf"], "other.yaml: must hold keys and their values"),
    (["study", "short", "--config-dir", "conf"], "short.yaml: rows: Field required"),
    (["report", "lost", "--config-dir", "conf"], "conf/published/torn.yaml, line 3: this is no YAML ("),
    (["show", "experiment/latin", "--config-dir", "conf"], "conf/experiment/latin.yaml: this is no text in UTF-8 (byte 16)"),
    (["show", "inference/walk", "--config-dir", "conf"], "inference/walk: conf/inference/walk.yaml is there, its class is not; "
     "name its module, --plugin MODULE"),
    (["show", "inference/walk", "--plugin", "raising"], "--plugin: raising.py, line 5: ZeroDivisionError: division by zero"),
    (["list", "--plugin", "misspelt"], "--plugin: misspelt.py, line 3: SyntaxError: invalid syntax"),
    (["report", "moe_mog_steps", "--with", "scores.csv"], "--with scores.csv: has no column column; give the "
     "<study>_replicates.csv that runner report writes"),
    ([*SERIES, "dataset.path=nothing.csv"], "dataset.path=nothing.csv: the file is empty, nothing.csv holds "
     "nothing; name another"),
    ([*SERIES, "dataset.path=names.csv"], "dataset.path=names.csv: the file is empty, names.csv holds no line after its names; "
     "name another"),
    ([*SERIES, "dataset.path=infinite.csv"], "infinite.csv, line 3: y is 'inf', no number; mend it, or add it to "
     "dataset.missing"),
    (["resume", "aaaa"], "outputs/mog/aaaa/config.yaml, line 3: this is no YAML (expected ',' or ']', but got "
     "'<stream end>'); give the run's own command again"),
    (["resume", "bbbb"], "outputs/mog/bbbb/config.yaml: damaged, it lacks the experiment, or its plug-ins are no list; give "
     "the run's own command again"),
    (["resume", "cccc"], "outputs/mog/cccc/config.yaml: cannot be read (No such file or directory); give the run's own "
     "command again"),
    (["resume", "dddd"], "the record outputs/mog/dddd imports nonsuch, code that is not the runner's; give --trust if you "
     "know it"),
    (["compare", "aaaa", "bbbb"], "outputs/mog/aaaa: its run.json or config.yaml is damaged; give the run's own command again"),
    (["study", "moe_evolution"], "outputs/studies/moe_evolution/snapshot.yaml, line 3: this is no YAML ("),
    (["study", "moe_mog_table"], "outputs/studies/moe_mog_table/snapshot.yaml: damaged ("),
    ([MOG, "plugins=[misspelt]"], "plugins: misspelt.py, line 3: SyntaxError: invalid syntax"),
    ([MOG, "plugins=[raising]"], "plugins: raising.py, line 5: ZeroDivisionError: division by zero"),
    ([MOG, "plugins=[lacking]"], "plugins: lacking.py, line 1: No module named 'nonsuch_package'; install it, or put its "
     "folder on PYTHONPATH"),
    ([MOG, "plugins=[leaving]"], "plugins: leaving.py, line 1: SystemExit: bye"),
    ([MOG, "plugins=[taken]"], "plugins: taken.py, line 8: ValueError: inference=twice is already taken.A"),
]  # fmt: skip


@pytest.fixture
def own_files(tmp_path, monkeypatch):
    """A user's own YAML and modules."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="latin-1")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in FILES:  # another test has other modules of these names
        sys.modules.pop(Path(name).stem, None)
    registry._registered.pop(("inference", "twice"), None)


def told(argv, tmp_path, monkeypatch, capfd):
    """What a mistake is answered by, in this process, so that torch is imported once for all of them."""
    from runner import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["runner", *argv])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    error = capfd.readouterr().err.strip()
    assert exit_.value.code == 2
    assert "Traceback" not in error
    assert len(error.splitlines()) <= 2
    assert not list(tmp_path.glob("outputs/*/*/checkpoints"))
    return error


def matches(error, message):
    """Whole, or the beginning of a list."""
    return error == message or (message in error and not message.endswith("?"))


@pytest.mark.parametrize(("argv", "message"), MISTAKES, ids=[" ".join(a) for a, _ in MISTAKES])
def test_one_clear_line(argv, message, tmp_path, monkeypatch, capfd):
    assert matches(error := told(argv, tmp_path, monkeypatch, capfd), message), error


@pytest.mark.parametrize(("argv", "message"), WITH_FILES, ids=[" ".join(a) for a, _ in WITH_FILES])
def test_one_clear_line_about_files(argv, message, tmp_path, monkeypatch, capfd, own_files):
    error = told(argv, tmp_path, monkeypatch, capfd)
    hidden = "conf/inference/mala.yaml: not read, the runner has one of that name; call yours otherwise"
    first, _, rest = error.rpartition("\n")
    assert ("--config-dir" in argv) == first.endswith(hidden), error
    assert matches(rest, message), error


def test_hydra_still_says_its_version(monkeypatch, capfd):
    from runner import cli

    monkeypatch.setattr(sys, "argv", ["runner", "--version"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert not exit_.value.code
    assert capfd.readouterr().out.startswith("Hydra ")


def test_a_target_without_a_gradient(make_job, monkeypatch):
    from components.problems.density import Density
    from runner.execution.execute import run
    from runner.mistakes import ConfigError

    job = make_job(MOG, "smoke=true")
    load = type(job.dataset).load

    def stepwise(self, rng, setting):  # its density falls in steps
        problem: Density = load(self, rng, setting)
        problem.log_density = lambda theta: -theta.detach().abs().round().sum(1)
        return problem

    monkeypatch.setattr(type(job.dataset), "load", stepwise)
    with pytest.raises(ConfigError, match="cannot be differentiated; use inference=random_walk_mh"):
        run(job)


@pytest.mark.parametrize(("steps", "said"), [(539, "3 draws of each chain would be kept"), (540, "")])
def test_few_draws_are_said_before_the_run(make_job, steps, said):
    notes = make_job(MOG, f"steps={steps}").notes
    assert [said in note for note in notes] == ([True] if said else [])


@pytest.mark.parametrize("error", [
    MemoryError("Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                 "8000000000 bytes. Error code 12 (Cannot allocate memory)"),
    RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 8 GiB"),
])  # fmt: skip
def test_memory_that_runs_out(make_job, monkeypatch, error):
    from runner.execution.execute import run
    from runner.mistakes import RunFailure
    from runner.record.facts import read

    job = make_job(MOG, "smoke=true")

    def init(*_):
        raise error

    monkeypatch.setattr(type(job.inference), "init", init)
    with pytest.raises(
        RunFailure, match=r"^out of memory \(.* more were asked for\): ask for less at once \(batch_size, "
    ):
        run(job)
    facts = read(job.folder)
    assert facts is not None
    assert facts["state"] == "failed"
    assert facts["error"].startswith("out of memory")


def test_device_without_gpu(make_job):
    import torch

    from runner.mistakes import ConfigError

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ConfigError, match="device=cuda: no GPU was found; use device=cpu"):
        make_job("+experiment=friend_or_foe", "device=cuda")


def test_a_launcher_chosen_too_late(tmp_path):
    folder = tmp_path / "conf" / "experiment"
    folder.mkdir(parents=True)
    (folder / "late.yaml").write_text("# @package _global_\ndefaults:\n  - override /hydra/launcher: joblib\n")
    command = [
        str(Path(sys.executable).parent / "runner"),
        "--config-dir",
        str(tmp_path / "conf"),
        "-m",
        "+experiment=late,friend_or_foe",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert (
        "hydra/launcher: experiment=late chooses it too late for a sweep over experiments; add hydra/launcher=…"
        in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_output_folder_that_cannot_be_made(tmp_path, monkeypatch, capfd):
    from runner import cli

    (tmp_path / "file").write_text("")
    monkeypatch.setattr(
        sys, "argv", ["runner", GAME, "smoke=true", "tracking=false", f"output_dir={tmp_path}/file/out"]
    )
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2
    error = capfd.readouterr().err.strip()
    assert error.startswith("output_dir: cannot write to")
    assert "set output_dir=… to a folder you can write" in error


def test_an_error_is_called_by_its_own_name(tmp_path):
    from runner.mistakes import RunFailure
    from runner.record.record import disk_failure

    folder = tmp_path / "outputs" / "run"
    missing = disk_failure(FileNotFoundError(2, "No such file or directory", "/elsewhere/references.bib"), folder)
    assert isinstance(missing, RunFailure)
    assert str(missing).startswith("FileNotFoundError: /elsewhere/references.bib (No such file or directory);")
    broken = disk_failure(OSError(5, "Input/output error"), folder)
    assert str(broken).startswith("OSError: Input/output error;")
    for name in (folder / "run.json", folder.parent, None):
        refused = disk_failure(PermissionError(13, "Permission denied", name and str(name)), folder)
        assert str(refused).startswith(f"output_dir: cannot write to {folder} (Permission denied)")
