(* Tests at a fixed number of samples: Clopper-Pearson (`binomial`) and Hoeffding (`hoeffding`). *)
From Coquelicot Require Import Coquelicot.
From Coq Require Import Reals List Bool Lra Lia.
From Safer Require Import Smoothing EProcess Arcsine.
Import ListNotations.
Local Open Scope R_scope.

(* Events need only be compared on draws of the right length. *)
Lemma expect_le_length {A} (dom : list A) ks : Forall nonneg ks -> forall h h',
  (forall z, length z = length ks -> h z <= h' z) -> expect dom ks h <= expect dom ks h'.
Proof.
  induction 1 as [|k ks Hk _ IH]; intros h h' H; cbn; [now apply H|].
  apply sum_le; intros a _. apply Rmult_le_compat_l; [apply Hk|]. apply IH.
  intros z Hz. apply H. cbn. now f_equal.
Qed.

Lemma probability_le_length {A} (dom : list A) k N e e' : is_kernel dom k ->
  (forall w, length w = N -> e w = true -> e' w = true) -> probability dom k N e <= probability dom k N e'.
Proof.
  intros K H. apply expect_le_length; [now apply kernels_nonneg with dom, samples_kernels|].
  intros w Hw. rewrite repeat_length in Hw. specialize (H w Hw). unfold indicator.
  destruct (e w), (e' w); try lra.
Qed.

Lemma probability_nonneg {A} (dom : list A) k N e : is_kernel dom k -> 0 <= probability dom k N e.
Proof.
  intros K. apply expect_nonneg; [now apply kernels_nonneg with dom, samples_kernels|].
  intros w. unfold indicator. destruct (e w); lra.
Qed.

(* ---------------------------------------------------------------------------- Clopper-Pearson *)

(* P[Bin(n,p) >= k], by its recurrence. *)
Fixpoint tail (n k : nat) (p : R) : R :=
  match k, n with
  | O, _ => 1
  | S _, O => 0
  | S j, S m => p * tail m j p + (1 - p) * tail m k p
  end.

Theorem tail_is_probability n : forall k p, 0 <= p <= 1 ->
  probability vote_dom (vote_kernel p) n (fun w => k <=? successes w)%nat = tail n k p.
Proof.
  induction n as [|n IH]; intros k p Hp.
  - destruct k; reflexivity.
  - destruct k as [|k].
    + cbn [tail]. unfold probability.
      rewrite (expect_ext vote_dom _ _ (fun _ => 1)) by reflexivity.
      apply expect_one_kernels, samples_kernels. now apply vote_is_kernel.
    + unfold probability in *. cbn [repeat expect tail sum vote_dom vote_kernel].
      rewrite <- (IH k p Hp), <- (IH (S k) p Hp), Rplus_0_r.
      f_equal; f_equal; apply expect_ext; intros w; reflexivity.
Qed.

Lemma tail_unit n : forall k p, 0 <= p <= 1 -> unit_range (tail n k p).
Proof.
  intros k p Hp. rewrite <- tail_is_probability by assumption. apply expect_unit.
  - apply samples_kernels. now apply vote_is_kernel.
  - intros w. unfold indicator, unit_range. destruct (k <=? successes w)%nat; lra.
Qed.

Lemma tail_falls n k p : 0 <= p <= 1 -> tail n (S k) p <= tail n k p.
Proof.
  intros Hp. rewrite <- !tail_is_probability by assumption. apply probability_le; [now apply vote_is_kernel|].
  intros w H. apply Nat.leb_le in H. apply Nat.leb_le. lia.
Qed.

Lemma tail_grows n : forall k p p', 0 <= p <= p' -> p' <= 1 -> tail n k p <= tail n k p'.
Proof.
  induction n as [|n IH]; intros [|k] p p' Hp Hp'; cbn [tail]; try lra.
  pose proof (IH k p p' Hp Hp') as H0. pose proof (IH (S k) p p' Hp Hp') as H1.
  pose proof (tail_falls n k p) as F. assert (0 <= p <= 1) by lra. specialize (F H).
  assert (p * tail n k p' >= p * tail n k p) by (apply Rle_ge, Rmult_le_compat_l; lra).
  assert ((p' - p) * tail n k p' >= (p' - p) * tail n k p) by (apply Rle_ge, Rmult_le_compat_l; lra).
  assert ((p' - p) * tail n k p >= (p' - p) * tail n (S k) p) by (apply Rle_ge, Rmult_le_compat_l; lra).
  assert ((1 - p') * tail n (S k) p' >= (1 - p') * tail n (S k) p) by (apply Rle_ge, Rmult_le_compat_l; lra).
  lra.
Qed.

Lemma first_below (P : nat -> bool) n :
  (forall k, (k <= n)%nat -> P k = false) \/
  exists k, (k <= n)%nat /\ P k = true /\ forall j, (j < k)%nat -> P j = false.
Proof.
  induction n as [|n [IH|(k & H1 & H2 & H3)]].
  - destruct (P 0%nat) eqn:E; [right|left].
    + exists 0%nat. repeat split; auto. intros j Hj; lia.
    + intros k Hk. now replace k with 0%nat by lia.
  - destruct (P (S n)) eqn:E; [right|left].
    + exists (S n). repeat split; auto. intros j Hj. apply IH. lia.
    + intros k Hk. destruct (Nat.eq_dec k (S n)) as [->|]; auto. apply IH. lia.
  - right. exists k. repeat split; auto.
Qed.

(* A lower bound that names, for every count k, only values whose tail is at most delta (or 0) exceeds the
   true probability with probability at most delta. Any such value will do, not only the largest. *)
Theorem clopper_pearson n p delta (lower : nat -> R) : 0 <= p <= 1 -> 0 <= delta ->
  (forall k, 0 < lower k -> lower k <= 1 /\ tail n k (lower k) <= delta) ->
  probability vote_dom (vote_kernel p) n (fun w => negb (at_least (lower (successes w)) p)) <= delta.
Proof.
  intros Hp Hd Hl. set (over k := negb (at_least (lower k) p)).
  assert (O : forall k, over k = true -> p < lower k).
  { intros k. unfold over, at_least. destruct (Rle_dec (lower k) p); cbn; [discriminate|lra]. }
  destruct (first_below over n) as [H|(k & Hk & Hover & Hfirst)].
  - apply Rle_trans with (probability vote_dom (vote_kernel p) n (fun _ => false)).
    + apply probability_le_length; [now apply vote_is_kernel|]. intros w Hw Hov.
      rewrite <- Hov. symmetry. apply H. rewrite <- Hw. apply successes_le.
    + unfold probability. rewrite (expect_ext vote_dom _ _ (fun _ => 1 * 0)) by (intros; cbn; ring).
      rewrite expect_scale. lra.
  - apply Rle_trans with (tail n k p).
    + rewrite <- tail_is_probability by assumption. apply probability_le; [now apply vote_is_kernel|].
      intros w Hov. apply Nat.leb_le. apply Nat.nlt_ge. intros N. apply Hfirst in N.
      fold (over (successes w)) in Hov. congruence.
    + apply O in Hover. destruct (Hl k) as [L1 L2]; [lra|]. eapply Rle_trans; [|exact L2].
      apply tail_grows; lra.
Qed.

(* -------------------------------------------------------------------------------- Hoeffding *)

(* Hoeffding's lemma for a vote of probability m. *)
Lemma hoeffding_lemma m x : 0 <= m <= 1 -> 0 <= x ->
  m * exp (x * (1 - m)) + (1 - m) * exp (x * (0 - m)) <= exp (x * x / 8).
Proof.
  intros Hm Hx. set (D := fun x => 1 - m + m * exp x).
  assert (E1 : forall y, 0 <= y -> 1 <= exp y) by (intros y Hy; rewrite <- exp_0; now apply exp_le).
  assert (Dpos : forall y, 0 <= y -> 0 < D y).
  { intros y Hy. unfold D. specialize (E1 y Hy). assert (m * 1 <= m * exp y) by (apply Rmult_le_compat_l; lra). lra. }
  set (s := fun y => m * exp y / D y).
  assert (F' : forall y, 0 <= y -> s y - m - y / 4 <= 0).
  { intros y Hy. replace 0 with (s 0 - m - 0 / 4) at 1.
    2: { unfold s, D. rewrite exp_0. field. lra. }
    apply (falling (fun y => s y - m - y / 4) (fun y => m * exp y * (1 - m) / (D y * D y) - 1 / 4)); auto.
    - intros z Hz. specialize (Dpos z ltac:(lra)). unfold s, D in *. auto_derive; [lra|]. field. lra.
    - intros z Hz. specialize (Dpos z ltac:(lra)).
      assert (0 < D z * D z) by now apply Rmult_lt_0_compat.
      apply Rmult_le_reg_r with (D z * D z); auto.
      replace ((m * exp z * (1 - m) / (D z * D z) - 1 / 4) * (D z * D z))
        with (m * exp z * (1 - m) - D z * D z / 4) by (field; lra).
      unfold D. pose proof (pow2_ge_0 (1 - m - m * exp z)). cbn in H0. lra. }
  assert (F : ln (D x) - x * m - x * x / 8 <= 0).
  { replace 0 with (ln (D 0) - 0 * m - 0 * 0 / 8) at 1.
    2: { unfold D. rewrite exp_0. replace (1 - m + m * 1) with 1 by ring. rewrite ln_1. field. }
    apply (falling (fun x => ln (D x) - x * m - x * x / 8) (fun y => s y - m - y / 4)); auto.
    - intros z Hz. specialize (Dpos z ltac:(lra)). unfold s, D in *. auto_derive; [lra|]. field. lra.
    - intros z Hz. apply F'. lra. }
  replace (m * exp (x * (1 - m)) + (1 - m) * exp (x * (0 - m))) with (D x * exp (- (x * m))).
  - rewrite <- (exp_ln (D x)) by now apply Dpos. rewrite <- exp_plus. apply exp_le. lra.
  - unfold D. replace (x * (1 - m)) with (x + - (x * m)) by ring. replace (x * (0 - m)) with (- (x * m)) by ring.
    rewrite exp_plus. ring.
Qed.

Section Hoeffding.
  Context {A : Type}.
  Variable dom : list A.
  Variable k : A -> R.
  Hypothesis K : is_kernel dom k.

  (* An event of one sample (1 or 0), its probability, and how often it happened. *)
  Definition chance (v : A -> bool) : R := sum dom (fun a => k a * indicator (v a)).
  Definition often (v : A -> bool) (past : list A) : R := sum past (fun a => indicator (v a)).

  Lemma chance_unit v : 0 <= chance v <= 1.
  Proof.
    destruct K as [P S]. split.
    - apply sum_nonneg; intros a _. specialize (P a). unfold indicator. destruct (v a); lra.
    - rewrite <- S. apply sum_le; intros a _. specialize (P a). unfold indicator. destruct (v a); lra.
  Qed.

  Lemma chance_split v (f : bool -> R) :
    sum dom (fun a => k a * f (v a)) = chance v * f true + (1 - chance v) * f false.
  Proof.
    destruct K as [_ S]. rewrite <- S. unfold chance. clear.
    induction dom as [|a l IH]; cbn; [ring|]. rewrite IH. unfold indicator. destruct (v a); ring.
  Qed.

  Definition excess (v : A -> bool) (past : list A) : R := often v past - INR (length past) * chance v.

  Lemma exponential_supermartingale v x : 0 <= x ->
    supermartingale dom k (fun past => exp (x * excess v past - INR (length past) * (x * x / 8))).
  Proof.
    intros Hx. split; intros past; [left; apply exp_pos|].
    set (m := chance v). set (M := exp (x * excess v past - INR (length past) * (x * x / 8))).
    rewrite (sum_ext dom _ (fun a => k a * (exp (x * (indicator (v a) - m)) * exp (- (x * x / 8))) * M)).
    - rewrite sum_scale.
      rewrite (chance_split v (fun b => exp (x * (indicator b - m)) * exp (- (x * x / 8)))).
      replace M with (1 * M) at 2 by ring. apply Rmult_le_compat_r; [left; apply exp_pos|].
      fold m. pose proof (hoeffding_lemma m x (chance_unit v) Hx) as L. unfold indicator.
      apply (Rmult_le_compat_r (exp (- (x * x / 8)))) in L; [|left; apply exp_pos].
      rewrite <- exp_plus, Rplus_opp_r, exp_0 in L. lra.
    - intros a _. rewrite Rmult_assoc. f_equal. unfold M. rewrite <- !exp_plus. f_equal.
      unfold excess. change (length (a :: past)) with (S (length past)). rewrite S_INR. cbn [often sum].
      unfold often, m. ring.
  Qed.

  (* Hoeffding 1963, theorem 1, for votes. *)
  Theorem hoeffding v n t : 0 <= t ->
    probability dom k n (fun w => at_least (INR n * t) (excess v w)) <= exp (- (2 * INR n * (t * t))).
  Proof.
    intros Ht. set (x := 4 * t). set (delta := exp (- (2 * INR n * (t * t)))).
    assert (Hd : 0 < delta) by apply exp_pos.
    set (M := fun past => exp (x * excess v past - INR (length past) * (x * x / 8))).
    eapply Rle_trans; [|apply (ville dom k K M delta n)]; auto.
    - apply probability_le_length; auto. intros w Hw. unfold at_least.
      destruct (Rle_dec (INR n * t) (excess v w)) as [H|]; [|discriminate]. intros _.
      apply at_stop_reaches with (fun _ => false).
      assert (Full : forall w past : list A, at_stop (fun _ => false) past w = rev w ++ past).
      { clear. induction w as [|a w IH]; intros past; cbn; auto. rewrite IH, <- app_assoc. reflexivity. }
      rewrite Full, app_nil_r. unfold M.
      assert (Ex : excess v (rev w) = excess v w).
      { unfold excess. rewrite rev_length. f_equal. unfold often. clear. induction w as [|a w IH]; cbn; auto.
        rewrite sum_app, IH. cbn. ring. }
      rewrite Ex, rev_length, Hw. unfold delta.
      replace (1 / exp (- (2 * INR n * (t * t)))) with (exp (2 * INR n * (t * t))).
      + apply exp_le. assert (x * (INR n * t) <= x * excess v w) by (apply Rmult_le_compat_l; unfold x; lra).
        unfold x in *. lra.
      + rewrite exp_Ropp. field. pose proof (exp_pos (2 * INR n * (t * t))). lra.
    - apply exponential_supermartingale. unfold x; lra.
    - unfold M, excess, often. cbn. rewrite <- exp_0. apply exp_le. lra.
  Qed.

  (* The test of the program. If the lead of y over c is at most 2q, then a counted lead of more than 2q + 2t
     against the class with most votes has probability at most delta, with t = sqrt(log(K/delta) / 2n) for
     K classes: two events of probability delta/K. *)
  Theorem hoeffding_certificate (y c : A -> bool) n q t delta classes (strongest : list A -> R) :
    (0 < n)%nat -> 2 <= classes -> 0 < delta < 1 ->
    t = sqrt (ln (classes / delta) / (2 * INR n)) ->
    chance y - chance c <= 2 * q ->
    (forall w, often c w <= strongest w) ->
    probability dom k n
      (fun w => negb (at_least ((often y w - strongest w) / INR n) (2 * q + 2 * t))) <= delta.
  Proof.
    intros Hn Hc Hd Ht Hnull Hs. assert (N : 0 < INR n) by now apply lt_0_INR.
    assert (R1 : 1 < classes / delta).
    { apply Rmult_lt_reg_r with delta; [lra|]. replace (classes / delta * delta) with classes by (field; lra). lra. }
    assert (L : 0 < ln (classes / delta)) by (rewrite <- ln_1; apply ln_increasing; lra).
    assert (T2 : t * t = ln (classes / delta) / (2 * INR n)).
    { rewrite Ht. apply sqrt_sqrt. apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra. }
    assert (T0 : 0 <= t) by (rewrite Ht; apply sqrt_pos).
    assert (P : exp (- (2 * INR n * (t * t))) = delta / classes).
    { rewrite T2.
      replace (2 * INR n * (ln (classes / delta) / (2 * INR n))) with (ln (classes / delta)) by (field; lra).
      rewrite exp_Ropp, exp_ln by lra. field. lra. }
    pose proof (hoeffding y n t T0) as Hy. pose proof (hoeffding (fun a => negb (c a)) n t T0) as Hnc.
    rewrite P in Hy, Hnc.
    apply Rle_trans with (delta / classes + delta / classes).
    2: { apply Rmult_le_reg_r with classes; [lra|].
         replace ((delta / classes + delta / classes) * classes) with (delta * 2) by (field; lra).
         apply Rmult_le_compat_l; lra. }
    eapply Rle_trans; [|apply Rplus_le_compat; [exact Hy|exact Hnc]].
    eapply Rle_trans; [|now apply probability_or].
    apply probability_le_length; auto. intros w Hw. unfold at_least at 1.
    destruct (Rle_dec ((often y w - strongest w) / INR n) (2 * q + 2 * t)) as [|H]; [discriminate|]. intros _.
    apply orb_true_iff.
    assert (Lead : INR n * (2 * q + 2 * t) < often y w - often c w).
    { specialize (Hs w). apply Rnot_le_lt in H. apply (Rmult_lt_compat_r (INR n)) in H; auto.
      replace ((often y w - strongest w) / INR n * INR n) with (often y w - strongest w) in H by (field; lra). lra. }
    assert (Nc : chance (fun a => negb (c a)) = 1 - chance c).
    { destruct K as [_ S]. rewrite <- S. unfold chance. clear. induction dom as [|a l IH]; cbn; [ring|].
      rewrite IH. unfold indicator. destruct (c a); cbn; ring. }
    assert (No : often (fun a => negb (c a)) w = INR (length w) - often c w).
    { unfold often. clear. induction w as [|a w IH]; [cbn; ring|].
      change (length (a :: w)) with (S (length w)). rewrite S_INR. cbn [sum]. rewrite IH.
      unfold indicator. destruct (c a); cbn; ring. }
    unfold at_least, excess. rewrite Nc, No, Hw.
    destruct (Rle_dec (INR n * t) (often y w - INR n * chance y)); [now left|right].
    destruct (Rle_dec (INR n * t) (INR n - often c w - INR n * (1 - chance c))) as [|B]; auto. exfalso.
    assert (INR n * (chance y - chance c) <= INR n * (2 * q)) by (apply Rmult_le_compat_l; lra). lra.
  Qed.
End Hoeffding.
