(* The e-value of one number: the mixture of likelihood ratios over theta in [p0,1] with the arcsine
   (Jeffreys) prior.

   The program's formula is
     E(k,n) = int_p0^1 theta^(k-1/2) (1-theta)^(n-k-1/2) dtheta
              / ( int_p0^1 theta^(-1/2) (1-theta)^(-1/2) dtheta * p0^k (1-p0)^(n-k) ).
   With theta = (sin x)^2, dtheta = 2 sin x cos x dx, and p0 = (sin a)^2 the prior is uniform on [a, pi/2] and
   the integrals are proper: E is the mean over x in [a, pi/2] of like(x) / like(a), where
   like(x) = (sin x)^2k (cos x)^2(n-k). With x = a + u (pi/2 - a) it is a mean over u in [0,1]; that is the
   definition here. *)
From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Safer Require Import Smoothing EProcess.
Local Open Scope R_scope.

(* k votes for y, l against it. *)
Definition like (k l : nat) (x : R) : R := (sin x ^ 2) ^ k * (cos x ^ 2) ^ l.

Definition angle (a u : R) : R := a + u * (PI / 2 - a).

Definition mean_like (k l : nat) (a : R) : R := RInt (fun u => like k l (angle a u)) 0 1.

Definition arcsine_of (a : R) (k l : nat) : R := mean_like k l a / like k l a.

Definition arcsine_angle (a : R) (k n : nat) : R := arcsine_of a k (n - k).

(* As a function of p0. *)
Definition arcsine (p0 : R) (k n : nat) : R := arcsine_angle (asin (sqrt p0)) k n.

Lemma angle_range a u : 0 < a < PI / 2 -> 0 <= u <= 1 -> a <= angle a u <= PI / 2.
Proof.
  intros Ha Hu. unfold angle. assert (0 <= u * (PI / 2 - a)) by (apply Rmult_le_pos; lra).
  assert (u * (PI / 2 - a) <= 1 * (PI / 2 - a)) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Lemma angle_inner a u : 0 < a < PI / 2 -> 0 <= u < 1 -> a <= angle a u < PI / 2.
Proof.
  intros Ha Hu. split; [apply angle_range; lra|]. unfold angle.
  assert (u * (PI / 2 - a) < 1 * (PI / 2 - a)) by (apply Rmult_lt_compat_r; lra). lra.
Qed.

Lemma like_nonneg k l x : 0 <= like k l x.
Proof. apply Rmult_le_pos; apply pow_le, pow2_ge_0. Qed.

Lemma sin_cos_pos x : 0 < x < PI / 2 -> 0 < sin x /\ 0 < cos x.
Proof. intros H. split; [apply sin_gt_0|apply cos_gt_0]; pose proof PI_RGT_0; lra. Qed.

Lemma like_pos k l x : 0 < x < PI / 2 -> 0 < like k l x.
Proof.
  intros H. destruct (sin_cos_pos x H). apply Rmult_lt_0_compat; now repeat apply pow_lt.
Qed.

Lemma like_integrable k l a : ex_RInt (fun u => like k l (angle a u)) 0 1.
Proof.
  apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros u _.
  apply (ex_derive_continuous (fun u => like k l (angle a u))). unfold like, angle. auto_derive. auto.
Qed.

Lemma mean_nonneg k l a : 0 <= mean_like k l a.
Proof.
  unfold mean_like. apply RInt_ge_0; [lra|apply like_integrable|]. intros; apply like_nonneg.
Qed.

Lemma arcsine_nonneg a k l : 0 < a < PI / 2 -> 0 <= arcsine_of a k l.
Proof.
  intros Ha. apply Rmult_le_pos; [apply mean_nonneg|]. left. now apply Rinv_0_lt_compat, like_pos.
Qed.

Lemma arcsine_start a : arcsine_of a 0 0 = 1.
Proof.
  unfold arcsine_of, mean_like, like. cbn [pow].
  rewrite (RInt_ext _ (fun _ => 1)) by (intros; apply Rmult_1_l). rewrite RInt_const.
  unfold scal; cbn; unfold mult; cbn. field.
Qed.

Lemma like_k k l x : like (S k) l x = sin x ^ 2 * like k l x.
Proof. unfold like. cbn [pow]. ring. Qed.

Lemma like_l k l x : like k (S l) x = cos x ^ 2 * like k l x.
Proof. unfold like. cbn [pow]. ring. Qed.

Lemma square_sum x : sin x ^ 2 + cos x ^ 2 = 1.
Proof. pose proof (sin2_cos2 x) as H. unfold Rsqr in H. lra. Qed.

Lemma mean_scal c k l a :
  c * mean_like k l a = RInt (fun u => c * like k l (angle a u)) 0 1.
Proof. symmetry. apply (RInt_scal (V := R_CompleteNormedModule)), like_integrable. Qed.

Lemma scal_integrable c k l a : ex_RInt (fun u => c * like k l (angle a u)) 0 1.
Proof. apply (ex_RInt_scal (V := R_CompleteNormedModule)), like_integrable. Qed.

(* A success: the mean of theta/p0 under weights like, so E does not fall; a failure: it does not grow. *)
Lemma arcsine_success a k l : 0 < a < PI / 2 -> arcsine_of a k l <= arcsine_of a (S k) l.
Proof.
  intros Ha. pose proof (like_pos k l a Ha) as Hl. destruct (sin_cos_pos a Ha) as [Hs _].
  assert (S2 : 0 < sin a ^ 2) by now apply pow_lt.
  unfold arcsine_of. rewrite like_k.
  apply Rmult_le_reg_r with (sin a ^ 2 * like k l a); [now apply Rmult_lt_0_compat|].
  replace (mean_like k l a / like k l a * (sin a ^ 2 * like k l a))
    with (sin a ^ 2 * mean_like k l a) by (field; lra).
  replace (mean_like (S k) l a / (sin a ^ 2 * like k l a) * (sin a ^ 2 * like k l a))
    with (mean_like (S k) l a) by (field; split; lra).
  rewrite mean_scal. unfold mean_like. apply RInt_le; [lra|apply scal_integrable|apply like_integrable|].
  - intros u Hu. rewrite like_k.
    apply Rmult_le_compat_r; [apply like_nonneg|].
    destruct (angle_range a u Ha) as [H1 H2]; [lra|]. pose proof PI_RGT_0.
    apply pow_incr. split; [lra|]. apply sin_incr_1; lra.
Qed.

Lemma arcsine_failure a k l : 0 < a < PI / 2 -> arcsine_of a k (S l) <= arcsine_of a k l.
Proof.
  intros Ha. pose proof (like_pos k l a Ha) as Hl. destruct (sin_cos_pos a Ha) as [_ Hc].
  assert (C2 : 0 < cos a ^ 2) by now apply pow_lt.
  unfold arcsine_of. rewrite like_l.
  apply Rmult_le_reg_r with (cos a ^ 2 * like k l a); [now apply Rmult_lt_0_compat|].
  replace (mean_like k l a / like k l a * (cos a ^ 2 * like k l a))
    with (cos a ^ 2 * mean_like k l a) by (field; lra).
  replace (mean_like k (S l) a / (cos a ^ 2 * like k l a) * (cos a ^ 2 * like k l a))
    with (mean_like k (S l) a) by (field; split; lra).
  rewrite mean_scal. unfold mean_like. apply RInt_le; [lra|apply like_integrable|apply scal_integrable|].
  - intros u Hu. rewrite like_l.
    apply Rmult_le_compat_r; [apply like_nonneg|].
    destruct (angle_range a u Ha) as [H1 H2]; [lra|]. pose proof PI_RGT_0.
    apply pow_incr. split; [apply cos_ge_0; lra|]. apply cos_decr_1; lra.
Qed.

(* The martingale equality at p0 = (sin a)^2. *)
Lemma arcsine_martingale a k l : 0 < a < PI / 2 ->
  sin a ^ 2 * arcsine_of a (S k) l + (1 - sin a ^ 2) * arcsine_of a k (S l) = arcsine_of a k l.
Proof.
  intros Ha. pose proof (like_pos k l a Ha) as Hl. destruct (sin_cos_pos a Ha) as [Hs Hc].
  assert (S2 : 0 < sin a ^ 2) by now apply pow_lt. assert (C2 : 0 < cos a ^ 2) by now apply pow_lt.
  replace (1 - sin a ^ 2) with (cos a ^ 2) by (pose proof (square_sum a); lra).
  unfold arcsine_of. rewrite like_k, like_l.
  replace (mean_like k l a)
    with (mean_like (S k) l a + mean_like k (S l) a).
  - field. repeat split; lra.
  - unfold mean_like. rewrite <- (RInt_plus (V := R_CompleteNormedModule)) by apply like_integrable.
    apply RInt_ext; intros u _. unfold plus; cbn -[pow]. rewrite like_k, like_l.
    pose proof (square_sum (angle a u)) as H.
    replace (like k l (angle a u)) with ((sin (angle a u) ^ 2 + cos (angle a u) ^ 2) * like k l (angle a u)) at 3
      by (rewrite H; ring). ring.
Qed.

Lemma asin_range p0 : 0 < p0 < 1 -> 0 < asin (sqrt p0) < PI / 2.
Proof.
  intros H. assert (0 < sqrt p0) by (apply sqrt_lt_R0; lra).
  assert (sqrt p0 < 1) by (rewrite <- sqrt_1; apply sqrt_lt_1; lra).
  assert (- 1 < sqrt p0 < 1) by lra. destruct (asin_bound_lt _ H2) as [_ B]. split; [|exact B].
  apply Rnot_le_lt. intros N. pose proof PI_RGT_0. destruct (asin_bound (sqrt p0)).
  assert (sin (asin (sqrt p0)) <= sin 0) by (apply sin_incr_1; lra).
  rewrite sin_asin, sin_0 in H6 by lra. lra.
Qed.

Lemma sin_asin_square p0 : 0 < p0 < 1 -> sin (asin (sqrt p0)) ^ 2 = p0.
Proof.
  intros H. assert (0 < sqrt p0) by (apply sqrt_lt_R0; lra).
  assert (sqrt p0 < 1) by (rewrite <- sqrt_1; apply sqrt_lt_1; lra).
  rewrite sin_asin by lra. rewrite <- (sqrt_sqrt p0) at 2 by lra. ring.
Qed.

(* The mixture is what `eprocess` asks for. *)
Theorem arcsine_is_e_table p0 : 0 < p0 < 1 -> e_table p0 (arcsine p0).
Proof.
  intros H. pose proof (asin_range p0 H) as Ha. pose proof (sin_asin_square p0 H) as Hs.
  unfold arcsine, arcsine_angle. set (a := asin (sqrt p0)) in *. repeat split.
  - intros k n _. now apply arcsine_nonneg.
  - apply arcsine_start.
  - intros k n Hk. replace (S n - S k)%nat with (n - k)%nat by lia. replace (S n - k)%nat with (S (n - k)) by lia.
    eapply Rle_trans; [apply arcsine_failure; assumption|]. now apply arcsine_success.
  - intros k n Hk. replace (S n - S k)%nat with (n - k)%nat by lia. replace (S n - k)%nat with (S (n - k)) by lia.
    rewrite <- Hs. right. now apply arcsine_martingale.
Qed.

(* (c) for the e-value in use: with probability of success p <= p0, reaching 1/delta at any moment before
   the horizon has probability at most delta. *)
Theorem arcsine_eprocess p0 p delta N : 0 < p0 < 1 -> 0 <= p <= p0 -> 0 < delta ->
  probability vote_dom (vote_kernel p) N (reaches (e_of_counts (arcsine p0)) (1 / delta) nil) <= delta.
Proof. intros H Hp Hd. apply eprocess with p0; auto; [now apply arcsine_is_e_table|lra]. Qed.

(* --------------------------------------------------------------------- the formula in theta *)

Definition beta_density (k l : nat) (theta : R) : R := theta ^ k * (1 - theta) ^ l / sqrt (theta * (1 - theta)).

(* The substitution theta = (sin x)^2, up to any angle below pi/2. *)
Lemma theta_integral k l a b : 0 < a <= b -> b < PI / 2 ->
  RInt (beta_density k l) (sin a ^ 2) (sin b ^ 2) = 2 * RInt (like k l) a b.
Proof.
  intros Ha Hb.
  assert (In : forall x, Rmin a b <= x <= Rmax a b -> 0 < x < PI / 2).
  { intros x. rewrite Rmin_left, Rmax_right by lra. lra. }
  assert (Q : forall x, 0 < x < PI / 2 -> 0 < sin x ^ 2 < 1).
  { intros x Hx. destruct (sin_cos_pos x Hx) as [S C]. split; [now apply pow_lt|].
    pose proof (square_sum x). assert (0 < cos x ^ 2) by now apply pow_lt. lra. }
  rewrite <- (RInt_comp (V := R_CompleteNormedModule) (beta_density k l) (fun x => sin x ^ 2)
                (fun x => 2 * sin x * cos x) a b).
  - transitivity (RInt (fun x => scal 2 (like k l x)) a b).
    + apply RInt_ext. intros x Hx. assert (Hin : 0 < x < PI / 2) by (apply In; lra).
      destruct (sin_cos_pos x Hin) as [S C]. unfold scal; cbn -[pow]; unfold mult; cbn -[pow].
      unfold beta_density, like. replace (1 - sin x ^ 2) with (cos x ^ 2) by (pose proof (square_sum x); lra).
      replace (sqrt (sin x ^ 2 * cos x ^ 2)) with (sin x * cos x).
      * field. lra.
      * replace (sin x ^ 2 * cos x ^ 2) with ((sin x * cos x) * (sin x * cos x)) by ring.
        rewrite sqrt_square; [reflexivity|]. apply Rmult_le_pos; lra.
    + apply (RInt_scal (V := R_CompleteNormedModule)).
      apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros x _.
      apply (ex_derive_continuous (like k l)). unfold like. auto_derive. auto.
  - intros x Hx. apply (ex_derive_continuous (beta_density k l)). destruct (Q x (In x Hx)) as [Q0 Q1].
    assert (0 < sin x ^ 2 * (1 - sin x ^ 2)) by (apply Rmult_lt_0_compat; lra).
    unfold beta_density. auto_derive. split; [assumption|]. split; [|exact I].
    apply Rgt_not_eq, sqrt_lt_R0. assumption.
  - intros x _. split.
    + auto_derive; auto. ring.
    + apply (ex_derive_continuous (fun x => 2 * sin x * cos x)). auto_derive. auto.
Qed.

Lemma like_continuous k l x : continuous (like k l) x.
Proof. apply (ex_derive_continuous (like k l)). unfold like. auto_derive. auto. Qed.

(* So the improper integral over theta from p0 to 1 is twice the proper one. *)
Lemma theta_integral_limit k l a : 0 < a < PI / 2 ->
  filterlim (fun b => RInt (beta_density k l) (sin a ^ 2) (sin b ^ 2)) (at_left (PI / 2))
            (locally (2 * RInt (like k l) a (PI / 2))).
Proof.
  intros Ha. apply filterlim_ext_loc with (fun b => 2 * RInt (like k l) a b).
  - exists (mkposreal (PI / 2 - a) ltac:(lra)). intros b Hb Hlt. symmetry. apply theta_integral; [|exact Hlt].
    unfold ball in Hb; cbn in Hb. unfold AbsRing_ball, abs, minus, plus, opp in Hb; cbn in Hb.
    apply Rabs_def2 in Hb. lra.
  - apply (filterlim_filter_le_1 (F := locally (PI / 2)) (G := at_left (PI / 2))).
    { intros P [e He]. exists e. intros y Hy _. now apply He. }
    apply (continuous_mult (K := R_AbsRing) (fun _ => 2)); [apply continuous_const|].
    apply (ex_derive_continuous (fun b => RInt (like k l) a b)).
    exists (like k l (PI / 2)).
    apply (is_derive_RInt (V := R_NormedModule) (like k l) (fun b => RInt (like k l) a b) a).
    + exists (mkposreal 1 Rlt_0_1). intros b _. apply (RInt_correct (V := R_CompleteNormedModule)).
      apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros; apply like_continuous.
    + apply like_continuous.
Qed.

Lemma mean_like_integral k l a : a < PI / 2 -> mean_like k l a = RInt (like k l) a (PI / 2) / (PI / 2 - a).
Proof.
  intros Ha.
  pose proof (RInt_comp_lin (V := R_CompleteNormedModule) (like k l) (PI / 2 - a) a 0 1) as H.
  replace ((PI / 2 - a) * 0 + a) with a in H by ring. replace ((PI / 2 - a) * 1 + a) with (PI / 2) in H by ring.
  rewrite <- H by (apply (ex_RInt_continuous (V := R_CompleteNormedModule)); intros; apply like_continuous).
  rewrite (RInt_ext _ (fun u => (PI / 2 - a) * like k l (angle a u))).
  - rewrite <- mean_scal. field. lra.
  - intros u _. unfold scal; cbn -[pow]; unfold mult; cbn -[pow]. do 2 f_equal. unfold angle. ring.
Qed.

Lemma rest_angle p0 : 0 < p0 < 1 -> PI / 2 - asin (sqrt p0) = asin (sqrt (1 - p0)).
Proof.
  intros H. pose proof (asin_range p0 H) as Ha. assert (0 < sqrt p0) by (apply sqrt_lt_R0; lra).
  assert (sqrt p0 < 1) by (rewrite <- sqrt_1; apply sqrt_lt_1; lra).
  rewrite <- (asin_sin (PI / 2 - asin (sqrt p0))) by lra. f_equal.
  rewrite sin_shift, cos_asin by lra. f_equal. f_equal. apply Rsqr_sqrt. lra.
Qed.

(* The formula of the program: the numerator N = int_p0^1 theta^(k-1/2) (1-theta)^(n-k-1/2) dtheta exists as an
   improper integral, the prior's mass above p0 is 2 asin(sqrt(1-p0)) (the same with k = n = 0, where E = 1), and
   E is N over that mass and p0^k (1-p0)^(n-k). *)
Theorem arcsine_formula p0 k n : 0 < p0 < 1 -> (k <= n)%nat ->
  exists N, filterlim (fun b => RInt (beta_density k (n - k)) p0 (sin b ^ 2)) (at_left (PI / 2)) (locally N) /\
    arcsine p0 k n = N / (2 * asin (sqrt (1 - p0)) * (p0 ^ k * (1 - p0) ^ (n - k))).
Proof.
  intros Hp Hk. pose proof (asin_range p0 Hp) as Ha. pose proof (sin_asin_square p0 Hp) as Hs.
  rewrite <- rest_angle by assumption. set (a := asin (sqrt p0)) in *.
  exists (2 * RInt (like k (n - k)) a (PI / 2)). split.
  - rewrite <- Hs. now apply theta_integral_limit.
  - unfold arcsine, arcsine_angle, arcsine_of. fold a. rewrite mean_like_integral by lra.
    assert (L : like k (n - k) a = p0 ^ k * (1 - p0) ^ (n - k)).
    { unfold like. replace (cos a ^ 2) with (1 - sin a ^ 2) by (pose proof (square_sum a); lra). now rewrite Hs. }
    pose proof (like_pos k (n - k) a Ha) as P. rewrite L in *. revert P.
    generalize (p0 ^ k * (1 - p0) ^ (n - k)). intros D P. field. repeat split; lra.
Qed.

(* -------------------------------------------------------------------------- monotone in p0 *)

(* Wherever E exceeds 1 it falls as p0 grows. In the angle the prior is uniform and the log-likelihood
   concave. If its slope at a is not positive, the likelihood is nowhere above that at a, and E <= 1. Else
   the slope was positive at all smaller angles, and there the integrand like(angle a u) / like(a) falls
   in a for each u by itself. *)

Definition loglike (k l : nat) (x : R) : R := 2 * INR k * ln (sin x) + 2 * INR l * ln (cos x).
Definition slope (k l : nat) (x : R) : R := 2 * INR k * (cos x / sin x) - 2 * INR l * (sin x / cos x).

Lemma exp_ln_pow y k : 0 < y -> exp (2 * INR k * ln y) = (y ^ 2) ^ k.
Proof.
  intros H. rewrite <- pow_mult. rewrite <- (exp_ln (y ^ (2 * k))) by now apply pow_lt.
  f_equal. rewrite ln_pow by assumption. rewrite mult_INR. cbn. ring.
Qed.

Lemma like_exp k l x : 0 < x < PI / 2 -> like k l x = exp (loglike k l x).
Proof.
  intros H. destruct (sin_cos_pos x H). unfold loglike. now rewrite exp_plus, !exp_ln_pow.
Qed.

Lemma loglike_derive k l x : 0 < x < PI / 2 -> is_derive (loglike k l) x (slope k l x).
Proof.
  intros H. destruct (sin_cos_pos x H). unfold loglike, slope. auto_derive; [lra|]. field. lra.
Qed.

Lemma slope_falls k l x y : 0 < x <= y -> y < PI / 2 -> slope k l y <= slope k l x.
Proof.
  intros Hx Hy. destruct (sin_cos_pos x) as [Sx Cx]; [lra|]. destruct (sin_cos_pos y) as [Sy Cy]; [lra|].
  pose proof PI_RGT_0.
  assert (D : 0 <= sin (y - x)) by (apply sin_ge_0; lra). rewrite sin_minus in D.
  assert (P : 0 < sin x * sin y) by now apply Rmult_lt_0_compat.
  assert (Q : 0 < cos x * cos y) by now apply Rmult_lt_0_compat.
  assert (C : cos y / sin y <= cos x / sin x).
  { apply Rmult_le_reg_r with (sin x * sin y); auto.
    replace (cos y / sin y * (sin x * sin y)) with (cos y * sin x) by (field; lra).
    replace (cos x / sin x * (sin x * sin y)) with (cos x * sin y) by (field; lra). lra. }
  assert (T : sin x / cos x <= sin y / cos y).
  { apply Rmult_le_reg_r with (cos x * cos y); auto.
    replace (sin x / cos x * (cos x * cos y)) with (sin x * cos y) by (field; lra).
    replace (sin y / cos y * (cos x * cos y)) with (sin y * cos x) by (field; lra). lra. }
  pose proof (pos_INR k). pose proof (pos_INR l). unfold slope.
  apply (Rmult_le_compat_l (2 * INR k)) in C; [|lra]. apply (Rmult_le_compat_l (2 * INR l)) in T; lra.
Qed.

(* A function whose derivative is nowhere positive does not grow. *)
Lemma falling f f' a b : a <= b -> (forall x, a <= x <= b -> is_derive f x (f' x)) ->
  (forall x, a <= x <= b -> f' x <= 0) -> f b <= f a.
Proof.
  intros Hab Hd Hn. destruct (Req_dec a b) as [->|Hne]; [lra|].
  destruct (MVT_cor2 f f' a b) as (c & Hc & Hin); [lra| |].
  - intros c Hc. now apply is_derive_Reals, Hd.
  - assert (f' c * (b - a) <= 0 * (b - a)) by (apply Rmult_le_compat_r; [lra|apply Hn; lra]). lra.
Qed.

Lemma arcsine_behind_mode k l a : 0 < a < PI / 2 -> slope k l a <= 0 -> arcsine_of a k l <= 1.
Proof.
  intros Ha Hs. pose proof (like_pos k l a Ha) as Hl. unfold arcsine_of.
  apply Rmult_le_reg_r with (like k l a); auto.
  replace (mean_like k l a / like k l a * like k l a) with (mean_like k l a) by (field; lra).
  apply Rle_trans with (RInt (fun _ => like k l a) 0 1).
  - unfold mean_like. apply RInt_le; [lra|apply like_integrable|apply ex_RInt_const|].
    intros u Hu. destruct (angle_inner a u Ha) as [A1 A2]; [lra|].
    rewrite !like_exp by lra.
    assert (loglike k l (angle a u) <= loglike k l a).
    { apply falling with (slope k l); auto.
      - intros x Hx. apply loglike_derive; lra.
      - intros x Hx. apply Rle_trans with (slope k l a); auto. apply slope_falls; lra. }
    destruct (Req_dec (loglike k l (angle a u)) (loglike k l a)) as [->|]; [lra|].
    left. apply exp_increasing. lra.
  - right. rewrite RInt_const. unfold scal; cbn; unfold mult; cbn. ring.
Qed.

Lemma gain_derive k l u a : 0 <= u < 1 -> 0 < a < PI / 2 ->
  is_derive (fun a => loglike k l (angle a u) - loglike k l a) a
            ((1 - u) * slope k l (angle a u) - slope k l a).
Proof.
  intros Hu Ha. apply (is_derive_minus (V := R_NormedModule)); [|now apply loglike_derive].
  apply (is_derive_comp (V := R_NormedModule) (loglike k l) (fun a => angle a u)).
  - apply loglike_derive. pose proof (angle_inner a u Ha Hu). lra.
  - unfold angle. auto_derive; auto. ring.
Qed.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H|E]; [left; now apply exp_increasing|rewrite E; lra]. Qed.

Theorem arcsine_angle_falls k l a a' : 0 < a <= a' -> a' < PI / 2 ->
  1 < arcsine_of a' k l -> arcsine_of a' k l <= arcsine_of a k l.
Proof.
  intros Ha Ha' HE.
  assert (Hs : 0 < slope k l a').
  { apply Rnot_le_lt. intros N. apply arcsine_behind_mode in N; lra. }
  assert (Ra : 0 < a < PI / 2) by lra. assert (Ra' : 0 < a' < PI / 2) by lra.
  assert (Int : forall b, 0 < b < PI / 2 -> arcsine_of b k l = RInt (fun u => / like k l b * like k l (angle b u)) 0 1).
  { intros b Hb. rewrite <- mean_scal. unfold arcsine_of, Rdiv. ring. }
  rewrite !Int by assumption. apply RInt_le; [lra|apply scal_integrable|apply scal_integrable|].
  intros u Hu. destruct (angle_inner a u Ra) as [A1 A2]; [lra|]. destruct (angle_inner a' u Ra') as [A3 A4]; [lra|].
  rewrite !like_exp by lra. rewrite <- !exp_Ropp, <- !exp_plus. apply exp_le.
  assert (loglike k l (angle a' u) - loglike k l a' <= loglike k l (angle a u) - loglike k l a); [|lra].
  apply (falling (fun a => loglike k l (angle a u) - loglike k l a)
                 (fun a => (1 - u) * slope k l (angle a u) - slope k l a)); [lra| |].
  - intros x Hx. apply gain_derive; lra.
  - intros x Hx. destruct (angle_inner x u) as [X1 X2]; [lra|lra|].
    assert (slope k l (angle x u) <= slope k l x) by (apply slope_falls; lra).
    assert (slope k l a' <= slope k l x) by (apply slope_falls; lra).
    assert ((1 - u) * slope k l (angle x u) <= (1 - u) * slope k l x) by (apply Rmult_le_compat_l; lra).
    assert (0 <= u * slope k l x) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma asin_sqrt_le p p' : 0 < p <= p' -> p' < 1 -> asin (sqrt p) <= asin (sqrt p').
Proof.
  intros Hp Hp'. apply Rnot_lt_le. intros N.
  pose proof (asin_range p ltac:(lra)). pose proof (asin_range p' ltac:(lra)).
  assert (S : sin (asin (sqrt p')) < sin (asin (sqrt p))) by (apply sin_increasing_1; lra).
  assert (0 < sin (asin (sqrt p'))) by (apply sin_cos_pos; lra).
  assert (sin (asin (sqrt p')) ^ 2 < sin (asin (sqrt p)) ^ 2).
  { cbn. rewrite !Rmult_1_r. apply Rmult_le_0_lt_compat; lra. }
  rewrite !sin_asin_square in H2 by lra. lra.
Qed.

Theorem arcsine_falls p p' k n : 0 < p <= p' -> p' < 1 ->
  1 < arcsine p' k n -> arcsine p' k n <= arcsine p k n.
Proof.
  intros Hp Hp'. unfold arcsine, arcsine_angle. apply arcsine_angle_falls.
  - split; [apply asin_range; lra|now apply asin_sqrt_le].
  - apply asin_range; lra.
Qed.

(* A claim at p' is a claim at every smaller p, from the same counts. *)
Corollary arcsine_claims_nested p p' k n delta : 0 < p <= p' -> p' < 1 -> 0 < delta < 1 ->
  1 / delta <= arcsine p' k n -> 1 / delta <= arcsine p k n.
Proof.
  intros Hp Hp' Hd H. assert (1 < 1 / delta).
  { apply Rmult_lt_reg_r with delta; [lra|]. replace (1 / delta * delta) with 1 by (field; lra). lra. }
  eapply Rle_trans; [exact H|]. apply arcsine_falls; lra.
Qed.

(* So one delta covers every radius, whatever list of radii is reported, and a claim can be checked again
   alone. `bound` is any function of the history that names only values whose E reaches 1/delta: a claimed
   p0 = 1/2 + q, or the largest value that can be claimed. A claim "the probability exceeds t" that is
   false, at t or at any larger value, at the moment at which any rule stops, has probability at most
   delta; with t = p: the bound is a lower confidence bound. *)
Theorem arcsine_bound p t delta stop bound N : 0 <= p <= t -> 0 < t < 1 -> 0 < delta < 1 ->
  (forall past, t <= bound past -> bound past < 1 /\ 1 / delta <= e_of_counts (arcsine (bound past)) past) ->
  probability vote_dom (vote_kernel p) N (fun w => at_least t (bound (at_stop stop nil w))) <= delta.
Proof.
  intros Hp Ht Hd Hb. eapply Rle_trans; [|apply (arcsine_eprocess t p delta N); lra].
  apply probability_le; [apply vote_is_kernel; lra|].
  intros w. unfold at_least. destruct (Rle_dec t (bound (at_stop stop nil w))) as [H|]; [|discriminate]. intros _.
  apply at_stop_reaches with stop. destruct (Hb _ H) as [H1 H2].
  apply arcsine_claims_nested with (bound (at_stop stop nil w)); auto. lra.
Qed.
