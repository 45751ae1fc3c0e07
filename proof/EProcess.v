(* Tests that may be looked at after every sample: Ville's inequality on finite trees, the two forms of
   the e-value that the program uses, and why one error probability covers all radii.

   Samples are independent draws from one kernel over finitely many answers. A history is the list of the
   answers so far, the newest first. No measure theory: N samples are a draw of N slots (Smoothing.v), and
   every probability is a finite sum. *)
From Coq Require Import Reals List Bool Lra Lia.
From Safer Require Import Smoothing.
Import ListNotations.
Local Open Scope R_scope.

Section Ville.
  Context {A : Type}.
  Variable dom : list A.
  Variable k : A -> R.
  Hypothesis K : is_kernel dom k.

  Lemma samples_kernels N : Forall (is_kernel dom) (repeat k N).
  Proof. induction N; cbn; constructor; auto. Qed.

  (* The probability of an event of N samples: the mean of its indicator. *)
  Definition indicator (b : bool) : R := if b then 1 else 0.
  Definition probability (N : nat) (event : list A -> bool) : R :=
    expect dom (repeat k N) (fun w => indicator (event w)).

  Lemma probability_le N e e' :
    (forall w, e w = true -> e' w = true) -> probability N e <= probability N e'.
  Proof.
    intros H. apply expect_le.
    - now apply kernels_nonneg with dom, samples_kernels.
    - intros w. specialize (H w). unfold indicator. destruct (e w), (e' w); try lra.
  Qed.

  Lemma probability_or N e e' :
    probability N (fun w => e w || e' w) <= probability N e + probability N e'.
  Proof.
    unfold probability. rewrite <- expect_plus. apply expect_le.
    - now apply kernels_nonneg with dom, samples_kernels.
    - intros w. unfold indicator. destruct (e w), (e' w); cbn; lra.
  Qed.

  Definition at_least (level x : R) : bool := if Rle_dec level x then true else false.

  (* Whether M reaches the level at some moment from now to the end of the samples w. *)
  Fixpoint reaches (M : list A -> R) (level : R) (past w : list A) : bool :=
    at_least level (M past) ||
    match w with
    | [] => false
    | a :: later => reaches M level (a :: past) later
    end.

  Definition supermartingale (M : list A -> R) :=
    (forall past, 0 <= M past) /\ (forall past, sum dom (fun a => k a * M (a :: past)) <= M past).

  Lemma ville_from M level : supermartingale M -> 0 < level ->
    forall N past, expect dom (repeat k N) (fun w => indicator (reaches M level past w)) <= M past / level.
  Proof.
    intros [M0 MS] Hl. assert (I : 0 < / level) by now apply Rinv_0_lt_compat.
    assert (Reached : forall N past, level <= M past ->
              expect dom (repeat k N) (fun w => indicator (reaches M level past w)) <= M past / level).
    { intros N past H. rewrite (expect_ext dom _ _ (fun _ => 1)).
      - rewrite expect_one_kernels by apply samples_kernels.
        unfold Rdiv. apply Rmult_le_reg_r with level; auto.
        rewrite Rmult_assoc, Rinv_l by lra. lra.
      - intros [|a w]; cbn; unfold at_least; destruct (Rle_dec level (M past)); try lra; reflexivity. }
    induction N as [|N IH]; intros past; destruct (Rle_dec level (M past)) as [H|H]; auto.
    - cbn. unfold at_least. destruct (Rle_dec level (M past)); [lra|]. cbn.
      apply Rmult_le_pos; [apply M0|lra].
    - cbn [repeat expect]. apply Rle_trans with (sum dom (fun a => k a * M (a :: past) * / level)).
      + apply sum_le; intros a _. rewrite Rmult_assoc. apply Rmult_le_compat_l; [apply K|].
        rewrite (expect_ext dom _ _ (fun w => indicator (reaches M level (a :: past) w))); [apply IH|].
        intros w. cbn. unfold at_least at 1. destruct (Rle_dec level (M past)); [lra|]. reflexivity.
      + rewrite sum_scale. apply Rmult_le_compat_r; [lra|]. apply MS.
  Qed.

  (* Ville's inequality, for any horizon N. *)
  Theorem ville M delta N : supermartingale M -> M [] <= 1 -> 0 < delta ->
    probability N (reaches M (1 / delta) []) <= delta.
  Proof.
    intros HM H1 Hd. assert (I : 0 < 1 / delta) by (apply Rdiv_lt_0_compat; lra).
    eapply Rle_trans; [apply ville_from; auto|].
    replace (M [] / (1 / delta)) with (M [] * delta) by (field; lra).
    replace delta with (1 * delta) at 2 by ring. apply Rmult_le_compat_r; lra.
  Qed.

  (* The history at which a rule stops, or that of all samples. *)
  Fixpoint at_stop (stop : list A -> bool) (past w : list A) : list A :=
    if stop past then past
    else match w with
         | [] => past
         | a :: later => at_stop stop (a :: past) later
         end.

  Lemma at_stop_reaches M level stop : forall w past,
    level <= M (at_stop stop past w) -> reaches M level past w = true.
  Proof.
    assert (Now : forall past w, level <= M past -> reaches M level past w = true).
    { intros past w H. destruct w; cbn; unfold at_least; destruct (Rle_dec level (M past)); auto; lra. }
    induction w as [|a w IH]; intros past; cbn [at_stop].
    - destruct (stop past); apply Now.
    - destruct (stop past); [apply Now|]. intros H. cbn. rewrite (IH _ H). apply orb_true_r.
  Qed.

  (* One delta for all radii. Radius i has the process M i, and a rule `claims` that speaks at the moment
     of stopping, whenever that is, claims i only if every process up to i has reached 1/delta. If the null
     of radius r is true, then a claim at r or at any larger radius has probability at most delta. *)
  Theorem nested_claims (M : nat -> list A -> R) (claims : list A -> nat -> bool) stop delta r count N :
    supermartingale (M r) -> M r [] <= 1 -> 0 < delta ->
    (forall past i, claims past i = true -> forall j, (j <= i)%nat -> 1 / delta <= M j past) ->
    probability N (fun w => existsb (claims (at_stop stop [] w)) (seq r count)) <= delta.
  Proof.
    intros HM H1 Hd Hc. eapply Rle_trans; [|apply (ville (M r) delta N); auto].
    apply probability_le. intros w H. apply existsb_exists in H as (i & Hi & Hcl).
    apply in_seq in Hi. apply at_stop_reaches with stop. apply Hc with i; auto. lia.
  Qed.

  (* A finite mixture of supermartingales, with weights fixed beforehand, is one. *)
  Lemma mixture_supermartingale {T} (bets : list T) (share : T -> R) (M : T -> list A -> R) :
    (forall t, In t bets -> 0 <= share t /\ supermartingale (M t)) ->
    supermartingale (fun past => sum bets (fun t => share t * M t past)).
  Proof.
    intros H. split; intros past.
    - apply sum_nonneg; intros t Ht. destruct (H t Ht) as [Hs [M0 _]]. apply Rmult_le_pos; auto.
    - induction bets as [|t bets IH]; cbn.
      + rewrite (sum_ext dom _ (fun _ => 0)) by (intros; ring). rewrite sum_zero. lra.
      + rewrite (sum_ext dom _ (fun a => k a * M t (a :: past) * share t +
                                  k a * sum bets (fun t' => share t' * M t' (a :: past)))) by (intros; ring).
        rewrite sum_plus, sum_scale. destruct (H t (or_introl eq_refl)) as [Hs [_ MS]].
        specialize (MS past). assert (sum dom (fun a => k a * M t (a :: past)) * share t <= share t * M t past).
        { rewrite (Rmult_comm (share t)). now apply Rmult_le_compat_r. }
        assert (forall t', In t' bets -> 0 <= share t' /\ supermartingale (M t')) by (intros; apply H; now right).
        specialize (IH H1). lra.
  Qed.
End Ville.

(* ------------------------------------------------------------------------------ one number *)

(* Votes for y (true) and against it (false), with probability p of a vote for y. *)
Definition vote_dom := [true; false].
Definition vote_kernel (p : R) (b : bool) : R := if b then p else 1 - p.
Definition successes (past : list bool) : nat := count_occ bool_dec past true.

Lemma vote_is_kernel p : 0 <= p <= 1 -> is_kernel vote_dom (vote_kernel p).
Proof. intros H. split; [intros []; cbn; lra|]. cbn. ring. Qed.

Lemma successes_le past : (successes past <= length past)%nat.
Proof. apply count_occ_bound. Qed.

(* What a table E(k,n) of e-values must satisfy. *)
Definition e_table (p0 : R) (E : nat -> nat -> R) :=
  (forall k n, (k <= n)%nat -> 0 <= E k n) /\ E 0%nat 0%nat = 1 /\
  (forall k n, (k <= n)%nat -> E k (S n) <= E (S k) (S n)) /\
  (forall k n, (k <= n)%nat -> p0 * E (S k) (S n) + (1 - p0) * E k (S n) <= E k n).

Definition e_of_counts (E : nat -> nat -> R) (past : list bool) : R := E (successes past) (length past).

Lemma e_table_supermartingale p0 p E : e_table p0 E -> 0 <= p <= p0 -> p0 <= 1 ->
  supermartingale vote_dom (vote_kernel p) (e_of_counts E).
Proof.
  intros (E0 & _ & Emono & Emart) Hp H1. unfold e_of_counts. split; intros past.
  - apply E0, successes_le.
  - pose proof (successes_le past) as Hk. cbn.
    fold (successes past). set (s := successes past) in *. set (n := length past) in *.
    specialize (Emono s n Hk). specialize (Emart s n Hk).
    assert (p * (E (S s) (S n) - E s (S n)) <= p0 * (E (S s) (S n) - E s (S n))).
    { apply Rmult_le_compat_r; lra. }
    lra.
Qed.

(* (c) For every success probability p <= p0 the counts make E reach 1/delta before the horizon N, at any
   moment, with probability at most delta. *)
Theorem eprocess p0 p E delta N : e_table p0 E -> 0 <= p <= p0 -> p0 <= 1 -> 0 < delta ->
  probability vote_dom (vote_kernel p) N (reaches (e_of_counts E) (1 / delta) []) <= delta.
Proof.
  intros HE Hp H1 Hd. apply ville; auto.
  - apply vote_is_kernel; lra.
  - now apply e_table_supermartingale with p0.
  - unfold e_of_counts. cbn. destruct HE as (_ & -> & _). lra.
Qed.

(* ------------------------------------------------------------------------------ two classes *)

(* The factor of one sample with score Y (1, 1/2 or 0) for the bet t against "the mean is at most m". *)
Definition factor (m t score : R) : R := 1 - t + t * score / m.

Definition margin_term (m : R) (t : R) (wins draws losses : nat) : R :=
  factor m t 1 ^ wins * factor m t (1 / 2) ^ draws * factor m t 0 ^ losses.

(* The plain mean over the bets. *)
Definition margin_e (m : R) (bets : list R) (wins draws losses : nat) : R :=
  sum bets (fun t => / INR (length bets) * margin_term m t wins draws losses).

Lemma factor_nonneg m t s : 0 < m -> 0 <= t <= 1 -> 0 <= s -> 0 <= factor m t s.
Proof.
  intros Hm Ht Hs. unfold factor. assert (0 <= t * s / m).
  { apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. left. now apply Rinv_0_lt_compat. }
  lra.
Qed.

Lemma factor_mono_score m t s s' : 0 < m -> 0 <= t -> s <= s' -> factor m t s <= factor m t s'.
Proof.
  intros Hm Ht Hs. unfold factor, Rdiv. apply Rplus_le_compat_l, Rmult_le_compat_r.
  - left. now apply Rinv_0_lt_compat.
  - now apply Rmult_le_compat_l.
Qed.

Lemma factor_falls m m' t s : 0 < m <= m' -> 0 <= t -> 0 <= s -> factor m' t s <= factor m t s.
Proof.
  intros Hm Ht Hs. unfold factor, Rdiv. apply Rplus_le_compat_l, Rmult_le_compat_l; [now apply Rmult_le_pos|].
  apply Rinv_le_contravar; lra.
Qed.

Definition proper_bets (bets : list R) := bets <> [] /\ forall t, In t bets -> 0 <= t <= 1.

Lemma bets_share (bets : list R) : bets <> [] -> 0 < / INR (length bets).
Proof. intros H. apply Rinv_0_lt_compat, lt_0_INR. destruct bets; [congruence|]. cbn. lia. Qed.

Lemma margin_start m (bets : list R) : bets <> [] -> margin_e m bets 0 0 0 = 1.
Proof.
  intros H. unfold margin_e, margin_term. cbn [pow].
  rewrite (sum_ext bets _ (fun t => 1 * / INR (length bets))) by (intros; ring).
  rewrite sum_scale. replace (sum bets (fun _ => 1)) with (INR (length bets)).
  - apply Rinv_r. apply not_0_INR. destruct bets; [congruence|]. cbn; lia.
  - clear H. induction bets as [|t bets IH]; [reflexivity|].
    change (length (t :: bets)) with (S (length bets)). rewrite S_INR, IH. cbn. ring.
Qed.

(* The program takes the class with most votes for all of the others: a draw that becomes a loss lowers E. *)
Lemma margin_draw_to_loss m bets wins draws losses j : proper_bets bets -> 0 < m ->
  margin_e m bets wins draws (losses + j) <= margin_e m bets wins (draws + j) losses.
Proof.
  intros [Hb Ht] Hm. unfold margin_e. apply sum_le; intros t Hin. specialize (Ht t Hin).
  apply Rmult_le_compat_l; [left; now apply bets_share|]. unfold margin_term.
  rewrite !pow_add.
  replace (factor m t 1 ^ wins * factor m t (1 / 2) ^ draws * (factor m t 0 ^ losses * factor m t 0 ^ j))
    with (factor m t 1 ^ wins * factor m t (1 / 2) ^ draws * factor m t 0 ^ losses * factor m t 0 ^ j) by ring.
  replace (factor m t 1 ^ wins * (factor m t (1 / 2) ^ draws * factor m t (1 / 2) ^ j) * factor m t 0 ^ losses)
    with (factor m t 1 ^ wins * factor m t (1 / 2) ^ draws * factor m t 0 ^ losses * factor m t (1 / 2) ^ j) by ring.
  apply Rmult_le_compat_l.
  - repeat apply Rmult_le_pos; apply pow_le, factor_nonneg; lra.
  - apply pow_incr. split; [apply factor_nonneg; lra|]. apply factor_mono_score; lra.
Qed.

(* E falls in m: a claim at a larger null implies the claim at every smaller one. *)
Theorem margin_falls m m' bets wins draws losses : proper_bets bets -> 0 < m <= m' ->
  margin_e m' bets wins draws losses <= margin_e m bets wins draws losses.
Proof.
  intros [Hb Ht] Hm. unfold margin_e. apply sum_le; intros t Hin. specialize (Ht t Hin).
  apply Rmult_le_compat_l; [left; now apply bets_share|]. unfold margin_term.
  assert (F : forall s n, 0 <= s -> 0 <= factor m' t s ^ n <= factor m t s ^ n).
  { intros s n Hs. split; [apply pow_le, factor_nonneg; lra|].
    apply pow_incr; split; [apply factor_nonneg; lra|]. apply factor_falls; lra. }
  destruct (F 1 wins), (F (1 / 2) draws), (F 0 losses); try lra.
  apply Rmult_le_compat; auto; [now apply Rmult_le_pos|]. now apply Rmult_le_compat.
Qed.

Section Several.
  Context {A : Type}.
  Variable same : forall a b : A, {a = b} + {a <> b}.
  Variable dom : list A. (* all answers: classes, and whatever is no class *)
  Variable k : A -> R.   (* their probabilities *)
  Hypothesis K : is_kernel dom k.
  Variables y c : A.
  Hypothesis distinct : y <> c.

  Definition share_of (a : A) : R := sum dom (fun b => if same b a then k b else 0).
  Definition score (a : A) : R := if same a y then 1 else if same a c then 0 else 1 / 2.
  Definition count (past : list A) (a : A) : nat := count_occ same past a.

  Lemma score_mean : sum dom (fun a => k a * score a) = (1 + share_of y - share_of c) / 2.
  Proof.
    replace 1 with (sum dom k) at 1 by apply K. unfold share_of. clear K.
    induction dom as [|a l IH]; cbn; [field|]. rewrite IH. unfold score.
    destruct (same a y), (same a c); try (exfalso; congruence); field.
  Qed.

  Lemma counts_le past : (count past y + count past c <= length past)%nat.
  Proof.
    induction past as [|a past IH]; cbn; [lia|]. unfold count in *. cbn.
    destruct (same a y), (same a c); try (exfalso; congruence); lia.
  Qed.

  (* One bet, against one other class c. *)
  Definition bet_process (m t : R) (past : list A) : R :=
    margin_term m t (count past y) (length past - count past y - count past c) (count past c).

  Lemma bet_step m t a past : bet_process m t (a :: past) = factor m t (score a) * bet_process m t past.
  Proof.
    unfold bet_process, margin_term, score, count. pose proof (counts_le past) as H. unfold count in H.
    cbn [count_occ length].
    destruct (same a y), (same a c); try (exfalso; congruence).
    - replace (S (length past) - S (count_occ same past y) - count_occ same past c)%nat
        with (length past - count_occ same past y - count_occ same past c)%nat by lia. cbn [pow]. ring.
    - replace (S (length past) - count_occ same past y - S (count_occ same past c))%nat
        with (length past - count_occ same past y - count_occ same past c)%nat by lia. cbn [pow]. ring.
    - replace (S (length past) - count_occ same past y - count_occ same past c)%nat
        with (S (length past - count_occ same past y - count_occ same past c)) by lia. cbn [pow]. ring.
  Qed.

  Lemma bet_supermartingale m t : 0 < m -> 0 <= t <= 1 -> (1 + share_of y - share_of c) / 2 <= m ->
    supermartingale dom k (bet_process m t).
  Proof.
    intros Hm Ht Hmean. assert (P : forall past, 0 <= bet_process m t past).
    { intros past. unfold bet_process, margin_term.
      repeat apply Rmult_le_pos; apply pow_le, factor_nonneg; lra. }
    split; [exact P|]. intros past.
    rewrite (sum_ext dom _ (fun a => (k a * (1 - t) + k a * score a * (t / m)) * bet_process m t past)).
    - rewrite sum_scale, sum_plus, !sum_scale, score_mean. destruct K as [_ ->].
      replace (bet_process m t past) with (1 * bet_process m t past) at 2 by ring.
      apply Rmult_le_compat_r; [apply P|].
      assert (I : 0 <= t / m) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
      apply (Rmult_le_compat_r (t / m)) in Hmean; auto.
      replace (m * (t / m)) with t in Hmean by (field; lra). lra.
    - intros a _. rewrite bet_step. unfold factor. field. lra.
  Qed.

  Definition pair_process (m : R) (bets : list R) (past : list A) : R :=
    margin_e m bets (count past y) (length past - count past y - count past c) (count past c).

  Lemma pair_supermartingale m bets : proper_bets bets -> 0 < m ->
    (1 + share_of y - share_of c) / 2 <= m -> supermartingale dom k (pair_process m bets).
  Proof.
    intros [Hb Ht] Hm Hmean.
    apply (mixture_supermartingale dom k bets (fun _ => / INR (length bets)) (bet_process m)).
    intros t Hin. split; [left; now apply bets_share|]. apply bet_supermartingale; auto.
  Qed.

  (* (c), several classes. If g(y) - g(c) <= 2q for one other class c, and m >= 1/2 + q, then the e-value
     that the program computes, against the class with most votes, reaches 1/delta at any moment before
     the horizon with probability at most delta. `strongest` is that class's number of votes; of it is used
     only that it is at least that of c and leaves room for the votes for y. *)
  Theorem eprocess_several m q bets delta N (strongest : list A -> nat) :
    proper_bets bets -> 1 / 2 + q <= m -> 0 < m -> 0 < delta -> share_of y - share_of c <= 2 * q ->
    (forall past, (count past c <= strongest past)%nat /\ (count past y + strongest past <= length past)%nat) ->
    probability dom k N
      (reaches (fun past => margin_e m bets (count past y) (length past - count past y - strongest past)
                                     (strongest past)) (1 / delta) []) <= delta.
  Proof.
    intros Hb Hq Hm Hd Hnull Hs.
    eapply Rle_trans; [|apply (ville dom k K (pair_process m bets) delta N); auto].
    - apply probability_le; auto.
      assert (Below : forall past,
        margin_e m bets (count past y) (length past - count past y - strongest past) (strongest past)
        <= pair_process m bets past).
      { intros past. destruct (Hs past) as [H1 H2]. unfold pair_process.
        set (j := (strongest past - count past c)%nat).
        replace (strongest past) with (count past c + j)%nat by lia.
        replace (length past - count past y - count past c)%nat
          with (length past - count past y - (count past c + j) + j)%nat by lia.
        now apply margin_draw_to_loss. }
      intros w. generalize (@nil A). induction w as [|a w IH]; intros past; cbn; unfold at_least.
      + destruct (Rle_dec (1 / delta) (pair_process m bets past)); cbn; auto.
        destruct (Rle_dec (1 / delta) (margin_e m bets _ _ _)); cbn; auto.
        exfalso. apply n. eapply Rle_trans; [eassumption|apply Below].
      + destruct (Rle_dec (1 / delta) (pair_process m bets past)); cbn; auto.
        destruct (Rle_dec (1 / delta) (margin_e m bets _ _ _)); cbn; auto.
        exfalso. apply n. eapply Rle_trans; [eassumption|apply Below].
    - apply pair_supermartingale; auto. lra.
    - unfold pair_process. cbn. rewrite margin_start; [lra|apply Hb].
  Qed.

  (* One delta for all radii, and for a claim that is checked again alone: `bound` is any function of the
     history that names only values of m whose E reaches 1/delta. If the lead of y over c is such that the
     mean score is at most t, then a claim at t or at any larger value, at the moment of stopping, has
     probability at most delta. *)
  Theorem several_bound t bets delta N stop bound (strongest : list A -> nat) :
    proper_bets bets -> 0 < t -> 0 < delta -> (1 + share_of y - share_of c) / 2 <= t ->
    (forall past, (count past c <= strongest past)%nat /\ (count past y + strongest past <= length past)%nat) ->
    (forall past, t <= bound past -> 1 / delta <=
       margin_e (bound past) bets (count past y) (length past - count past y - strongest past) (strongest past)) ->
    probability dom k N (fun w => at_least t (bound (at_stop stop [] w))) <= delta.
  Proof.
    intros Hb Ht Hd Hnull Hs Hbound.
    eapply Rle_trans; [|apply (eprocess_several t (t - 1 / 2) bets delta N strongest); auto; lra].
    apply probability_le; auto. intros w. unfold at_least.
    destruct (Rle_dec t (bound (at_stop stop [] w))) as [H|]; [|discriminate]. intros _.
    apply at_stop_reaches with stop. eapply Rle_trans; [apply (Hbound _ H)|].
    apply margin_falls; auto.
  Qed.
End Several.

(* The bets of the program: 2^-4/24 to 2^-1/24, 1/24 to 23/24, 1 - 2^-1/24 to 1 - 2^-5/24. *)
Definition bet (j : nat) : R :=
  if (j <? 4)%nat then / 24 * / 2 ^ (4 - j)
  else if (j <? 27)%nat then INR (j - 3) / 24
  else 1 - / 24 * / 2 ^ (j - 26).

Definition bets : list R := map bet (seq 0 32).

Theorem bets_proper : proper_bets bets.
Proof.
  split; [discriminate|]. intros t Ht. apply in_map_iff in Ht as (j & <- & Hj). apply in_seq in Hj.
  unfold bet. assert (P : forall i, 0 < / 2 ^ i <= 1).
  { intros i. assert (1 <= 2 ^ i) by (apply pow_R1_Rle; lra). split; [apply Rinv_0_lt_compat; lra|].
    rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
  destruct (Nat.ltb_spec j 4); [specialize (P (4 - j)%nat); lra|].
  destruct (Nat.ltb_spec j 27); [|specialize (P (j - 26)%nat); lra].
  assert (0 <= INR (j - 3)) by apply pos_INR.
  assert (INR (j - 3) <= INR 23) by (apply le_INR; lia).
  replace (INR 23) with 23 in * by (cbn; ring). lra.
Qed.
