(* The vote that chooses the answer: draws are counted until the first class is clearly ahead of the second.

   For a votes of the first and b of the second the program computes
     E(a,b) = (2a-1)!! (2b-1)!! / (a+b)!
   and answers with the first class when E(a,b) >= (K-1)/alpha, with K classes. E is the mean of two arcsine
   mixtures against "both equally likely": one over theta in [1/2,1], which a true lead of the first class
   lets grow, and one over theta in [0,1/2], which a lead of the second does. Where the first class is ahead, its own
   mixture is at least E, and it does not grow in the mean when that class is not the more probable of the
   two. So each of the K-1 classes that are not the best is answered with probability at most alpha/(K-1). Where
   two classes are both the most probable, either of them is answered with that probability, both together:
   then E itself does not grow in the mean. *)
From Coq Require Import Reals List Bool Lra Lia.
From Coquelicot Require Import Coquelicot.
From Safer Require Import Smoothing EProcess Arcsine.
Import ListNotations.
Local Open Scope R_scope.

(* ------------------------------------------------------------------- the e-value of two classes *)

(* 1 * 3 * 5 * ... * (2n-1) *)
Fixpoint odd_product (n : nat) : R :=
  match n with
  | O => 1
  | S m => INR (2 * m + 1) * odd_product m
  end.

Definition vote_e (a b : nat) : R := odd_product a * odd_product b / INR (fact (a + b)).

Lemma odd_product_pos n : 0 < odd_product n.
Proof. induction n; cbn [odd_product]; [lra|]. apply Rmult_lt_0_compat; [apply lt_0_INR; lia|assumption]. Qed.

Lemma vote_e_pos a b : 0 < vote_e a b.
Proof.
  unfold vote_e. apply Rdiv_lt_0_compat.
  - apply Rmult_lt_0_compat; apply odd_product_pos.
  - apply lt_0_INR, lt_O_fact.
Qed.

Lemma vote_e_symmetric a b : vote_e a b = vote_e b a.
Proof. unfold vote_e. rewrite (Nat.add_comm b a). field. apply INR_fact_neq_0. Qed.

Lemma vote_e_step a b : vote_e (S a) b = INR (2 * a + 1) / INR (a + b + 1) * vote_e a b.
Proof.
  unfold vote_e. cbn [odd_product]. replace (S a + b)%nat with (S (a + b)) by lia.
  rewrite fact_simpl, mult_INR. replace (S (a + b)) with (a + b + 1)%nat by lia.
  field. split; [apply INR_fact_neq_0|apply not_0_INR; lia].
Qed.

(* Against a class with fewer votes E is at least as large: the second class alone need be looked at. *)
Theorem vote_e_falls a b c : (b <= c <= a)%nat -> vote_e a c <= vote_e a b.
Proof.
  intros [H1 H2]. induction c as [|c IH].
  - replace b with 0%nat by lia. lra.
  - destruct (Nat.eq_dec b (S c)) as [->|]; [lra|]. eapply Rle_trans; [|apply IH; lia].
    rewrite (vote_e_symmetric a (S c)), vote_e_step, (vote_e_symmetric c a).
    replace (vote_e a c) with (1 * vote_e a c) at 2 by ring.
    apply Rmult_le_compat_r; [left; apply vote_e_pos|].
    assert (0 < INR (c + a + 1)) by (apply lt_0_INR; lia).
    apply Rmult_le_reg_r with (INR (c + a + 1)); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
    rewrite Rmult_1_r, Rmult_1_l. apply le_INR. lia.
Qed.

(* The half of the mixture that a lead of the first class lets grow. *)
Definition half (a b : nat) : R := arcsine_of (PI / 4) a b.

Lemma quarter : 0 < PI / 4 < PI / 2.
Proof. pose proof PI_RGT_0. lra. Qed.

Lemma sin_quarter : sin (PI / 4) ^ 2 = 1 / 2.
Proof.
  pose proof (square_sum (PI / 4)) as H. rewrite cos_PI4, <- sin_PI4 in H. lra.
Qed.

Lemma cos_quarter : cos (PI / 4) ^ 2 = 1 / 2.
Proof. pose proof (square_sum (PI / 4)). pose proof sin_quarter. lra. Qed.

Lemma like_quarter a b : like a b (PI / 4) = (1 / 2) ^ (a + b).
Proof. unfold like. rewrite sin_quarter, cos_quarter, pow_add. reflexivity. Qed.

Lemma half_mean a b : half a b = 2 ^ (a + b) * mean_like a b (PI / 4).
Proof.
  unfold half, arcsine_of. rewrite like_quarter. unfold Rdiv. rewrite Rmult_1_l, pow_inv by lra.
  rewrite Rinv_inv. ring.
Qed.

Lemma half_nonneg a b : 0 <= half a b.
Proof. apply arcsine_nonneg, quarter. Qed.

Lemma half_martingale a b : half (S a) b + half a (S b) = 2 * half a b.
Proof.
  pose proof (arcsine_martingale (PI / 4) a b quarter) as H. rewrite sin_quarter in H. unfold half in *. lra.
Qed.

Lemma half_success a b : half a b <= half (S a) b.
Proof. apply arcsine_success, quarter. Qed.

Lemma half_failure a b : half a (S b) <= half a b.
Proof. apply arcsine_failure, quarter. Qed.

(* The integral of a derivative: (sin^(2a+1) cos^(2b+1))' from pi/4 to pi/2. *)
Definition bump (a b : nat) (u : R) : R :=
  sin (angle (PI / 4) u) ^ (2 * a + 1) * cos (angle (PI / 4) u) ^ (2 * b + 1).

Definition slope (a b : nat) (u : R) : R :=
  PI / 4 * (INR (2 * a + 1) * like a (S b) (angle (PI / 4) u) - INR (2 * b + 1) * like (S a) b (angle (PI / 4) u)).

Lemma even_pow x n : x ^ (2 * n) = (x ^ 2) ^ n.
Proof. now rewrite pow_mult. Qed.

Lemma bump_slope a b u : is_derive (bump a b) u (slope a b u).
Proof.
  unfold bump, slope, angle, like. auto_derive; [auto|].
  replace (Init.Nat.pred (a + (a + 0) + 1)) with (2 * a)%nat by lia.
  replace (Init.Nat.pred (b + (b + 0) + 1)) with (2 * b)%nat by lia.
  replace (a + (a + 0) + 1)%nat with (2 * a + 1)%nat by lia.
  replace (b + (b + 0) + 1)%nat with (2 * b + 1)%nat by lia.
  rewrite !pow_add, !even_pow. cbn [pow].
  set (x := PI / 4 + u * (PI / 2 + - (PI / 4))).
  replace (PI / 4 + u * (PI / 2 - PI / 4)) with x by (unfold x; ring). field.
Qed.

Lemma slope_mean a b : RInt (slope a b) 0 1 =
  PI / 4 * (INR (2 * a + 1) * mean_like a (S b) (PI / 4) - INR (2 * b + 1) * mean_like (S a) b (PI / 4)).
Proof.
  unfold slope. rewrite (RInt_scal (V := R_CompleteNormedModule)).
  - rewrite (RInt_minus (V := R_CompleteNormedModule)) by apply scal_integrable.
    rewrite !mean_scal. reflexivity.
  - apply (ex_RInt_minus (V := R_CompleteNormedModule)); apply scal_integrable.
Qed.

Lemma slope_integral a b : RInt (slope a b) 0 1 = bump a b 1 - bump a b 0.
Proof.
  apply is_RInt_unique. apply (is_RInt_derive (bump a b) (slope a b)).
  - intros u _. apply bump_slope.
  - intros u _. apply (ex_derive_continuous (slope a b)). unfold slope, like, angle. auto_derive. auto.
Qed.

Lemma bump_ends a b : bump a b 1 - bump a b 0 = bump b a 1 - bump b a 0.
Proof.
  unfold bump, angle. replace (PI / 4 + 1 * (PI / 2 - PI / 4)) with (PI / 2) by field.
  replace (PI / 4 + 0 * (PI / 2 - PI / 4)) with (PI / 4) by ring.
  rewrite cos_PI2, cos_PI4, <- sin_PI4, !pow_add, !even_pow. cbn [pow].
  rewrite !Rmult_0_l. ring.
Qed.

Definition both (a b : nat) : R := mean_like a b (PI / 4) + mean_like b a (PI / 4).

Lemma both_split a b : both (S a) b + both a (S b) = both a b.
Proof.
  pose proof (half_martingale a b) as H. pose proof (half_martingale b a) as H'.
  rewrite !half_mean in *. unfold both.
  replace (S a + b)%nat with (S (a + b)) in * by lia. replace (a + S b)%nat with (S (a + b)) in * by lia.
  replace (S b + a)%nat with (S (a + b)) in * by lia. replace (b + S a)%nat with (S (a + b)) in * by lia.
  replace (b + a)%nat with (a + b)%nat in * by lia. cbn [pow] in *.
  assert (P : 0 < 2 ^ (a + b)) by (apply pow_lt; lra).
  assert (Q : forall x y z, 2 * 2 ^ (a + b) * x + 2 * 2 ^ (a + b) * y = 2 * (2 ^ (a + b) * z) -> x + y = z).
  { intros x y z E. apply Rmult_eq_reg_l with (2 * 2 ^ (a + b)); [lra|]. apply Rgt_not_eq. lra. }
  apply Q in H. apply Q in H'. lra.
Qed.

Lemma both_ratio a b : INR (2 * a + 1) * both a (S b) = INR (2 * b + 1) * both (S a) b.
Proof.
  pose proof (slope_mean a b) as H. pose proof (slope_mean b a) as H'.
  rewrite slope_integral in H, H'. rewrite (bump_ends a b) in H. rewrite H in H'.
  apply Rmult_eq_reg_l in H'; [|pose proof PI_RGT_0; lra]. unfold both. lra.
Qed.

Lemma both_step a b : INR (2 * a + 1) * both a b = 2 * INR (a + b + 1) * both (S a) b.
Proof.
  rewrite <- both_split, Rmult_plus_distr_l, both_ratio.
  replace (2 * INR (a + b + 1)) with (INR (2 * a + 1) + INR (2 * b + 1)); [ring|].
  replace (2 * INR (a + b + 1)) with (INR (2 * (a + b + 1))) by (rewrite mult_INR; cbn; ring).
  rewrite <- plus_INR. f_equal. lia.
Qed.

(* The program's E is the mean of the two mixtures. *)
Theorem vote_e_is_mixture a b : vote_e a b = (half a b + half b a) / 2.
Proof.
  assert (Base : forall b, vote_e 0 b = (half 0 b + half b 0) / 2).
  { clear. induction b as [|b IH].
    - unfold half. rewrite arcsine_start. unfold vote_e. cbn. field.
    - rewrite vote_e_symmetric, vote_e_step, vote_e_symmetric, IH, !half_mean.
      replace (0 + S b)%nat with (S b) by lia. replace (S b + 0)%nat with (S b) by lia.
      replace (0 + b)%nat with b by lia. replace (b + 0 + 1)%nat with (S b) by lia. replace (b + 0)%nat with b by lia.
      pose proof (both_step b 0) as H. replace (b + 0 + 1)%nat with (S b) in H by lia. unfold both in H.
      assert (P : INR (S b) <> 0) by (apply not_0_INR; lia).
      apply Rmult_eq_reg_l with (INR (S b)); auto. cbn [pow].
      replace (INR (S b) * (INR (2 * b + 1) / INR (S b) *
          ((2 ^ b * mean_like 0 b (PI / 4) + 2 ^ b * mean_like b 0 (PI / 4)) / 2)))
        with (2 ^ b / 2 * (INR (2 * b + 1) * (mean_like b 0 (PI / 4) + mean_like 0 b (PI / 4)))) by (field; auto).
      rewrite H. field. }
  induction a as [|a IH]; [apply Base|].
  rewrite vote_e_step, IH, !half_mean.
  replace (S a + b)%nat with (S (a + b)) by lia. replace (b + S a)%nat with (S (a + b)) by lia.
  replace (b + a)%nat with (a + b)%nat by lia. pose proof (both_step a b) as H. unfold both in H.
  assert (P : INR (a + b + 1) <> 0) by (apply not_0_INR; lia).
  apply Rmult_eq_reg_l with (INR (a + b + 1)); auto. cbn [pow].
  replace (INR (a + b + 1) * (INR (2 * a + 1) / INR (a + b + 1) *
      ((2 ^ (a + b) * mean_like a b (PI / 4) + 2 ^ (a + b) * mean_like b a (PI / 4)) / 2)))
    with (2 ^ (a + b) / 2 * (INR (2 * a + 1) * (mean_like a b (PI / 4) + mean_like b a (PI / 4)))) by (field; auto).
  rewrite H. field.
Qed.

(* Where the first class is ahead, its own half is at least E. *)
Lemma half_ahead a b : (b <= a)%nat -> half b a <= half a b.
Proof.
  intros H. replace a with (b + (a - b))%nat by lia. generalize (a - b)%nat. intros d. clear H.
  induction d as [|d IH]; [rewrite Nat.add_0_r; lra|].
  replace (b + S d)%nat with (S (b + d)) by lia.
  eapply Rle_trans; [apply half_failure|]. eapply Rle_trans; [apply IH|]. apply half_success.
Qed.

Lemma vote_e_half a b : (b <= a)%nat -> vote_e a b <= half a b.
Proof. intros H. rewrite vote_e_is_mixture. pose proof (half_ahead a b H). lra. Qed.

(* --------------------------------------------------------------------------------- the vote *)

Section Vote.
  Context {A : Type}.
  Variable same : forall a b : A, {a = b} + {a <> b}.
  Variable dom : list A. (* all answers: classes, and whatever is no class *)
  Variable k : A -> R.   (* their probabilities *)
  Hypothesis K : is_kernel dom k.

  Let share := share_of same dom k.
  Let votes := count same.

  Definition pair_half (a b : A) (past : list A) : R := half (votes past a) (votes past b).

  Lemma pair_sum a b f1 f2 f3 : a <> b ->
    sum dom (fun x => k x * (if same x a then f1 else if same x b then f2 else f3)) =
    share a * f1 + share b * f2 + (1 - share a - share b) * f3.
  Proof.
    intros H. unfold share, share_of. replace 1 with (sum dom k) by apply K. clear K.
    induction dom as [|x l IH]; cbn; [ring|]. rewrite IH.
    destruct (same x a), (same x b); try (exfalso; congruence); ring.
  Qed.

  Lemma share_nonneg a : 0 <= share a.
  Proof. apply sum_nonneg. intros x _. destruct (same x a); [apply K|lra]. Qed.

  Lemma pair_step a b x past (f : nat -> nat -> R) : a <> b ->
    f (votes (x :: past) a) (votes (x :: past) b) =
    (if same x a then f (S (votes past a)) (votes past b)
     else if same x b then f (votes past a) (S (votes past b))
     else f (votes past a) (votes past b)).
  Proof.
    intros H. unfold votes, count. cbn [count_occ].
    destruct (same x a), (same x b); try (exfalso; congruence); reflexivity.
  Qed.

  (* A class that is not the more probable of the two. *)
  Lemma pair_half_supermartingale a b : a <> b -> share a <= share b -> supermartingale dom k (pair_half a b).
  Proof.
    intros H Hs. split; intros past; [apply half_nonneg|]. unfold pair_half.
    rewrite (sum_ext dom _ _ (fun x _ => f_equal (Rmult (k x)) (pair_step a b x past half H))).
    rewrite pair_sum by assumption. set (m := votes past a). set (n := votes past b).
    pose proof (half_martingale m n). pose proof (half_success m n). pose proof (half_failure m n).
    pose proof (share_nonneg a). pose proof (share_nonneg b).
    assert (0 <= (share b - share a) * (half m n - half m (S n))) by (apply Rmult_le_pos; lra).
    replace (half (S m) n) with (2 * half m n - half m (S n)) by lra. lra.
  Qed.

  (* Two classes of the same probability: E itself. *)
  Definition pair_e (a b : A) (past : list A) : R := vote_e (votes past a) (votes past b).

  Lemma pair_e_supermartingale a b : a <> b -> share a = share b -> supermartingale dom k (pair_e a b).
  Proof.
    intros H Hs. split; intros past; [left; apply vote_e_pos|]. unfold pair_e.
    rewrite (sum_ext dom _ _ (fun x _ => f_equal (Rmult (k x)) (pair_step a b x past vote_e H))).
    rewrite pair_sum by assumption. set (m := votes past a). set (n := votes past b).
    rewrite !vote_e_is_mixture. pose proof (half_martingale m n). pose proof (half_martingale n m). rewrite Hs.
    right. replace (half (S m) n) with (2 * half m n - half m (S n)) by lra.
    replace (half (S n) m) with (2 * half n m - half n (S m)) by lra. field.
  Qed.

  Lemma probability_list {B} N (l : list B) (event : B -> list A -> bool) bound :
    (forall b, In b l -> probability dom k N (event b) <= bound) ->
    probability dom k N (fun w => existsb (fun b => event b w) l) <= INR (length l) * bound.
  Proof.
    induction l as [|b l IH]; intros H.
    - cbn. unfold probability. rewrite (expect_ext dom _ _ (fun _ => 0 * 0)) by (intros; cbn; ring).
      rewrite expect_scale. lra.
    - cbn [existsb]. eapply Rle_trans; [now apply probability_or|].
      replace (length (b :: l)) with (S (length l)) by reflexivity. rewrite S_INR.
      assert (probability dom k N (event b) <= bound) by (apply H; now left).
      assert (probability dom k N (fun w => existsb (fun b => event b w) l) <= INR (length l) * bound)
        by (apply IH; intros; apply H; now right). lra.
  Qed.

  Lemma best_exists (l : list A) : l <> [] -> exists b, In b l /\ forall a, In a l -> share a <= share b.
  Proof.
    induction l as [|x l IH]; intros H; [congruence|]. destruct l as [|y l].
    - exists x. split; [now left|]. intros a [->|[]]. lra.
    - destruct IH as (b & Hb & Hm); [discriminate|]. destruct (Rle_dec (share x) (share b)).
      + exists b. split; [now right|]. intros a [->|Ha]; [lra|now apply Hm].
      + exists x. split; [now left|]. intros a [->|Ha]; [lra|]. specialize (Hm a Ha). lra.
  Qed.

  (* Whether a class is the most probable one, alone. *)
  Definition wins (classes : list A) (a : A) : bool :=
    forallb (fun b => if same b a then true else if Rlt_dec (share b) (share a) then true else false) classes.

  Lemma wins_not classes a : wins classes a = false -> exists b, In b classes /\ b <> a /\ share a <= share b.
  Proof.
    induction classes as [|b l IH]; cbn; [discriminate|]. intros H. apply andb_false_iff in H as [H|H].
    - exists b. destruct (same b a); [discriminate|]. destruct (Rlt_dec (share b) (share a)); [discriminate|].
      repeat split; auto. lra.
    - destruct (IH H) as (c & Hc & Hn & Hs). exists c. auto.
  Qed.

  Lemma remove_length (a : A) l : NoDup l -> In a l -> S (length (remove same a l)) = length l.
  Proof.
    induction l as [|b l IH]; intros Hd [].
    - subst b. cbn. destruct (same a a); [|congruence]. inversion Hd; subst. now rewrite notin_remove.
    - inversion Hd; subst. cbn. destruct (same a b) as [->|]; [contradiction|]. cbn. now rewrite IH.
  Qed.

  Variable classes : list A.
  Hypothesis distinct : NoDup classes.
  Hypothesis several : (2 <= length classes)%nat.
  Variable alpha : R.
  Hypothesis positive : 0 < alpha.

  (* What the program asks before it answers: `second` is the number of votes of the second class. *)
  Definition clear (past : list A) (a : A) (second : nat) :=
    (forall b, In b classes -> b <> a -> (votes past b <= second)%nat) /\ (second <= votes past a)%nat /\
    INR (length classes - 1) / alpha <= vote_e (votes past a) second.

  Lemma clear_pair past a second b : clear past a second -> In b classes -> b <> a ->
    (votes past b <= votes past a)%nat /\ INR (length classes - 1) / alpha <= vote_e (votes past a) (votes past b).
  Proof.
    intros (H1 & H2 & H3) Hb Hn. specialize (H1 b Hb Hn). split; [lia|].
    eapply Rle_trans; [apply H3|]. apply vote_e_falls. lia.
  Qed.

  Let others := INR (length classes - 1).

  Lemma others_pos : 0 < others.
  Proof. unfold others. apply lt_0_INR. lia. Qed.

  Lemma pair_ville M N : supermartingale dom k M -> M [] <= 1 ->
    probability dom k N (reaches M (others / alpha) []) <= alpha / others.
  Proof.
    intros HM H1. pose proof others_pos. replace (others / alpha) with (1 / (alpha / others)) by (field; lra).
    apply ville; auto. apply Rdiv_lt_0_compat; lra.
  Qed.

  Lemma half_start a b : pair_half a b [] <= 1.
  Proof. unfold pair_half, votes, count, half. cbn. rewrite arcsine_start. lra. Qed.

  (* Answering a class that is not, alone, the most probable one has probability at most alpha, whenever the vote
     stops. *)
  Theorem vote_is_right N stop (answer : list A -> option A) (second : list A -> nat) :
    (forall past a, answer past = Some a -> In a classes /\ clear past a (second past)) ->
    probability dom k N (fun w => match answer (at_stop stop [] w) with
                                  | Some a => negb (wins classes a)
                                  | None => false
                                  end) <= alpha.
  Proof.
    intros Hans. pose proof others_pos as Ho.
    destruct (best_exists classes) as (best & Hbest & Hmax); [intros ->; cbn in several; lia|].
    set (rest := remove same best classes).
    assert (Lrest : length rest = (length classes - 1)%nat).
    { unfold rest. pose proof (remove_length best classes distinct Hbest). lia. }
    assert (Crest : forall a, In a classes -> a <> best -> In a rest).
    { intros a Ha Hn. unfold rest. now apply in_in_remove. }
    assert (Irest : forall a, In a rest -> In a classes /\ a <> best) by (intros a Ha; now apply in_remove in Ha).
    (* One event of probability alpha/(K-1) for every class but the best; that of a rival of the same probability, if
       there is one, also covers the best. *)
    assert (Cover : exists process : A -> list A -> R,
      (forall a, In a rest -> supermartingale dom k (process a) /\ process a [] <= 1) /\
      (forall past a, answer past = Some a -> wins classes a = false ->
         exists c, In c rest /\ others / alpha <= process c past)).
    { destruct (wins classes best) eqn:Hw.
      - exists (fun a => pair_half a best). split.
        + intros a Ha. apply Irest in Ha as [Ha Hn]. split; [|apply half_start].
          apply pair_half_supermartingale; auto.
        + intros past a Hq Hnot. destruct (Hans past a Hq) as [Ha Hc].
          assert (Hn : a <> best) by (intros ->; congruence). exists a. split; auto.
          destruct (clear_pair past a _ best Hc Hbest (not_eq_sym Hn)) as [H1 H2].
          eapply Rle_trans; [apply H2|]. now apply vote_e_half.
      - destruct (wins_not classes best Hw) as (rival & Hr & Hrn & Hrs).
        assert (Htie : share rival = share best) by (apply Rle_antisym; auto).
        exists (fun a => if same a rival then pair_e rival best else pair_half a best). split.
        + intros a Ha. apply Irest in Ha as [Ha Hn]. destruct (same a rival) as [->|].
          * split; [now apply pair_e_supermartingale|]. unfold pair_e, votes, count, vote_e. cbn. lra.
          * split; [|apply half_start]. apply pair_half_supermartingale; auto.
        + intros past a Hq _. destruct (Hans past a Hq) as [Ha Hc].
          destruct (same a best) as [->|Hn].
          * exists rival. split; auto. destruct (same rival rival); [|congruence].
            destruct (clear_pair past best _ rival Hc Hr Hrn) as [_ H2]. unfold pair_e.
            now rewrite vote_e_symmetric.
          * exists a. split; auto. destruct (clear_pair past a _ best Hc Hbest (not_eq_sym Hn)) as [H1 H2].
            destruct (same a rival) as [->|]; [exact H2|]. eapply Rle_trans; [apply H2|]. now apply vote_e_half. }
    destruct Cover as (process & Hp & Hcover).
    apply Rle_trans with (probability dom k N
      (fun w => existsb (fun a => reaches (process a) (others / alpha) [] w) rest)).
    - apply probability_le; auto. intros w. destruct (answer (at_stop stop [] w)) as [a|] eqn:Hq; [|discriminate].
      intros Hw. apply negb_true_iff in Hw. destruct (Hcover _ a Hq Hw) as (c & Hc & Hreach).
      apply existsb_exists. exists c. split; auto. now apply at_stop_reaches with stop.
    - eapply Rle_trans.
      + apply probability_list with (bound := alpha / others). intros a Ha. destruct (Hp a Ha).
        now apply pair_ville.
      + rewrite Lrest. fold others. right. field. lra.
  Qed.
End Vote.
