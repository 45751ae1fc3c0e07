(* From a text to a certificate: what the error probability delta bounds.

   A text can be attacked at radius R if some X' that differs from it in at most R slots, each a synonym, has a
   class other than y with as large a share of the draws as y. For such a text, each method certifies y at R,
   or at any larger radius, with probability at most delta over independent draws. (That is not a bound on
   the share of wrong certificates among those issued.) The same holds for R edits under draws that delete.

   All of it goes through one number: a text that can be attacked has a lead of at most 2q over some class, q
   being that of the synonyms or of the edits, and each method errs on such a text with probability at most delta. *)
From Coq Require Import Reals List Bool Permutation Sorted Lra Lia.
From Safer Require Import Smoothing Edits EProcess Arcsine Binomial.
Import ListNotations.
Local Open Scope R_scope.

(* ------------------------------------------------------- samples seen through a function *)

Lemma sum_swap {A B} (l : list A) (m : list B) f :
  sum l (fun a => sum m (fun b => f a b)) = sum m (fun b => sum l (fun a => f a b)).
Proof.
  induction l as [|a l IH]; cbn; [now rewrite sum_zero|]. rewrite IH, <- sum_plus. reflexivity.
Qed.

Section Seen.
  Context {A B : Type}.
  Variable same : forall a b : B, {a = b} + {a <> b}.
  Variable dom : list A.
  Variable all : list B.
  Variable k : A -> R.
  Variable f : A -> B.
  Hypothesis K : is_kernel dom k.
  Hypothesis distinct : NoDup all.
  Hypothesis complete : forall a, In (f a) all.

  Definition seen (b : B) : R := sum dom (fun a => if same (f a) b then k a else 0).

  Lemma pick (H : B -> R) b : In b all -> sum all (fun b' => if same b b' then H b' else 0) = H b.
  Proof.
    generalize distinct. generalize all. induction 1 as [|x l Hx _ IH]; cbn; [tauto|]. intros [->|Hin].
    - destruct (same b b); [|congruence].
      rewrite (sum_ext l _ (fun _ => 0)); [rewrite sum_zero; ring|].
      intros b' Hb'. destruct (same b b'); [subst; tauto|reflexivity].
    - rewrite IH by assumption. destruct (same b x); [subst; tauto|ring].
  Qed.

  Lemma seen_sum (H : B -> R) : sum dom (fun a => k a * H (f a)) = sum all (fun b => seen b * H b).
  Proof.
    unfold seen.
    rewrite (sum_ext all _ (fun b => sum dom (fun a => k a * (if same (f a) b then H b else 0)))).
    - rewrite sum_swap. apply sum_ext; intros a _.
      rewrite (sum_ext all _ (fun b => (if same (f a) b then H b else 0) * k a)) by (intros; ring).
      rewrite sum_scale, pick by apply complete. ring.
    - intros b _. rewrite <- sum_scale. apply sum_ext; intros a _. destruct (same (f a) b); ring.
  Qed.

  Lemma seen_kernel : is_kernel all seen.
  Proof.
    destruct K as [P S]. split.
    - intros b. apply sum_nonneg; intros a _. destruct (same (f a) b); [apply P|lra].
    - rewrite <- S. rewrite (sum_ext all _ (fun b => seen b * 1)) by (intros; ring).
      rewrite <- (seen_sum (fun _ => 1)). apply sum_ext; intros; ring.
  Qed.

  Lemma seen_expect N : forall h, expect dom (repeat k N) (fun w => h (map f w)) = expect all (repeat seen N) h.
  Proof.
    induction N as [|N IH]; intros h; cbn; [reflexivity|].
    rewrite <- (seen_sum (fun b => expect all (repeat seen N) (fun z => h (b :: z)))).
    apply sum_ext; intros a _. f_equal. rewrite <- IH. reflexivity.
  Qed.

  Theorem seen_probability N event :
    probability dom k N (fun w => event (map f w)) = probability all seen N event.
  Proof. apply (seen_expect N (fun w => indicator (event w))). Qed.

  Lemma seen_share b : In b all -> share_of same all seen b = seen b.
  Proof.
    intros Hb. unfold share_of. rewrite <- (pick seen b Hb). apply sum_ext; intros b' _.
    destruct (same b' b), (same b b'); congruence.
  Qed.
End Seen.

(* Votes for and against: a vote for y has the chance of its event. *)
Lemma votes_expect {A} (dom : list A) k v N : is_kernel dom k -> forall h,
  expect dom (repeat k N) (fun w => h (map v w)) = expect vote_dom (repeat (vote_kernel (chance dom k v)) N) h.
Proof.
  intros K. induction N as [|N IH]; intros h; [reflexivity|]. cbn [repeat expect map].
  rewrite (sum_ext dom _ (fun a => k a * (fun b => expect vote_dom (repeat (vote_kernel (chance dom k v)) N)
                                              (fun z => h (b :: z))) (v a))).
  - rewrite (chance_split dom k K v (fun b => expect vote_dom (repeat (vote_kernel (chance dom k v)) N)
                                          (fun z => h (b :: z)))). cbn. ring.
  - intros a _. cbn. f_equal. apply (IH (fun z => h (v a :: z))).
Qed.

(* ------------------------------------------------------------------ a text with a small lead *)

Section Close.
  Context {A W C : Type}.
  Variable same : forall c d : C, {c = d} + {c <> d}.
  Variable dom : list A.
  Variable kernel : W -> A -> R.
  Variable f : list A -> option C. (* the model; None: an answer that is no class *)
  Variable classes : list C.

  Hypothesis kernels : forall x, is_kernel dom (kernel x).
  Hypothesis classes_distinct : NoDup classes.
  Hypothesis classes_complete : forall c, In c classes.

  Definition share (X : list W) (c : C) : R := g dom kernel (answers same f) X c.

  Variables (X : list W) (q : R) (y : C).
  Hypothesis close : exists c, c <> y /\ share X y - share X c <= 2 * q.

  Lemma close_half : share X y <= 1 / 2 + q.
  Proof.
    destruct close as (c & Hc & Hle), (answers_votes same f) as (V0 & V1 & V2).
    assert (P : share X c + share X y <= 1) by (unfold share; apply g_pair; auto). lra.
  Qed.

  (* --------------------------------------------------------------- without samples *)

  (* Enumeration: own of w (whole) weights go to y, at most `rival` to each other class. *)
  Lemma close_enumeration (own rival w : Z) : (0 < w)%Z -> 0 <= q ->
    share X y = IZR own / IZR w -> (forall c, c <> y -> share X c <= IZR rival / IZR w) ->
    ~ (own - rival > Int_part (2 * q * IZR w))%Z.
  Proof.
    intros Hw Hq Hy Hc N. pose proof (enumerated_margin own rival w q Hw Hq N).
    destruct close as (c & Hne & Hle). specialize (Hc c Hne). lra.
  Qed.

  (* ------------------------------------------------------------------- samples *)

  (* One sample is a draw of the text. *)
  Definition space := draws dom (length X).
  Definition law := weight (map kernel X).

  Lemma law_kernel : is_kernel space law.
  Proof.
    assert (K : Forall (is_kernel dom) (map kernel X)).
    { apply Forall_forall; intros k Hk. apply in_map_iff in Hk as (x & <- & _). apply kernels. }
    split.
    - unfold law. apply kernels_nonneg in K. induction K as [|k ks Hk _ IH]; intros [|a z]; cbn; try lra.
      apply Rmult_le_pos; [apply Hk|apply IH].
    - rewrite <- (expect_one_kernels dom _ K), expect_is_sum, map_length. apply sum_ext; intros; unfold law; ring.
  Qed.

  Lemma law_mean h : sum space (fun z => law z * h z) = mean dom kernel X h.
  Proof. unfold mean. rewrite expect_is_sum, map_length. reflexivity. Qed.

  Definition answers_c (c : C) (z : list A) : bool :=
    match f z with Some d => if same d c then true else false | None => false end.

  Lemma chance_share c : chance space law (answers_c c) = share X c.
  Proof.
    unfold share, g. rewrite <- law_mean. apply sum_ext; intros z _. f_equal.
    unfold answers_c, answers, indicator. destruct (f z); [|reflexivity]. now destruct (same c0 c).
  Qed.

  Lemma share_unit c : 0 <= share X c <= 1.
  Proof. rewrite <- chance_share. apply chance_unit, law_kernel. Qed.

  (* `adaptive` with two labels. `claimed` names, at every history of votes for and against y, a null value
     whose e-value reaches 1/delta (or anything below t where nothing is claimed). *)
  Lemma close_two_labels t delta stop claimed N : 1 / 2 + q <= t -> 0 < t < 1 -> 0 < delta < 1 ->
    (forall past, t <= claimed past ->
       claimed past < 1 /\ 1 / delta <= e_of_counts (arcsine (claimed past)) past) ->
    probability space law N (fun w => at_least t (claimed (at_stop stop [] (map (answers_c y) w)))) <= delta.
  Proof.
    intros Hq Ht Hd Hc. unfold probability.
    rewrite (votes_expect space law (answers_c y) N law_kernel
               (fun v => indicator (at_least t (claimed (at_stop stop [] v))))).
    rewrite chance_share. apply arcsine_bound; auto.
    pose proof close_half. pose proof (share_unit y). lra.
  Qed.

  (* `binomial`. *)
  Lemma close_binomial t delta (lower : nat -> R) N : 1 / 2 + q <= t -> 0 <= delta ->
    (forall k, 0 < lower k -> lower k <= 1 /\ tail N k (lower k) <= delta) ->
    probability space law N (fun w => negb (at_least (lower (successes (map (answers_c y) w))) t)) <= delta.
  Proof.
    intros Hq Hd Hl. pose proof close_half. pose proof (share_unit y).
    eapply Rle_trans; [|apply (clopper_pearson N (share X y) delta lower); auto].
    unfold probability. rewrite <- (chance_share y).
    rewrite <- (votes_expect space law (answers_c y) N law_kernel
               (fun v => indicator (negb (at_least (lower (successes v)) (chance space law (answers_c y)))))).
    rewrite chance_share. apply (probability_le space law law_kernel N).
    intros w. unfold at_least. destruct (Rle_dec _ t); [discriminate|].
    destruct (Rle_dec _ (share X y)); [lra|reflexivity].
  Qed.

  (* `hoeffding`. strongest: at least the votes of each other class. *)
  Lemma close_hoeffding N t delta (number : R) (strongest : list (list A) -> R) :
    (0 < N)%nat -> 2 <= number -> 0 < delta < 1 -> t = sqrt (ln (number / delta) / (2 * INR N)) ->
    (forall c w, c <> y -> often (answers_c c) w <= strongest w) ->
    probability space law N
      (fun w => negb (at_least ((often (answers_c y) w - strongest w) / INR N) (2 * q + 2 * t))) <= delta.
  Proof.
    intros HN Hk Hd Ht Hs. destruct close as (c & Hne & Hle).
    apply (hoeffding_certificate space law law_kernel (answers_c y) (answers_c c) N q t delta number); auto.
    rewrite !chance_share. exact Hle.
  Qed.

  (* `adaptive` with several labels, or answers that are no label. *)
  Definition same_answer (a b : option C) : {a = b} + {a <> b}.
  Proof. decide equality. Defined.

  Definition all_answers : list (option C) := None :: map Some classes.

  Lemma all_answers_distinct : NoDup all_answers.
  Proof.
    constructor.
    - intros H. apply in_map_iff in H as (c & Hc & _). discriminate.
    - apply FinFun.Injective_map_NoDup; auto. intros c d H. now injection H.
  Qed.

  Lemma all_answers_complete z : In (f z) all_answers.
  Proof. destruct (f z); [right; now apply in_map|now left]. Qed.

  Definition votes (past : list (option C)) (c : C) : nat := count_occ same_answer past (Some c).

  (* The votes of the strongest class other than y. *)
  Definition rival (past : list (option C)) : nat :=
    list_max (map (fun c => if same c y then 0%nat else votes past c) classes).

  Lemma rival_spec past :
    (forall c, c <> y -> (votes past c <= rival past)%nat) /\ (votes past y + rival past <= length past)%nat.
  Proof.
    split.
    - intros c Hc. unfold rival.
      set (l := map (fun c => if same c y then 0%nat else votes past c) classes).
      pose proof (proj1 (list_max_le l _) (le_n _)) as F. unfold l.
      rewrite Forall_forall in F. apply F. apply in_map_iff. exists c. split; [|apply classes_complete].
      destruct (same c y); congruence.
    - assert (B : (rival past <= length past - votes past y)%nat).
      { apply list_max_le. apply Forall_forall. intros n Hn. apply in_map_iff in Hn as (c & <- & _).
        destruct (same c y) as [|Hne]; [lia|].
        assert (D : Some y <> Some c) by congruence. pose proof (counts_le same_answer (Some y) (Some c) D past) as L.
        unfold count in L. unfold votes. lia. }
      assert (votes past y <= length past)%nat by apply count_occ_bound. lia.
  Qed.

  Lemma close_several_labels t delta stop claimed N : 1 / 2 + q <= t -> 0 < t -> 0 < delta ->
    (forall past, t <= claimed past -> 1 / delta <=
       margin_e (claimed past) bets (votes past y) (length past - votes past y - rival past) (rival past)) ->
    probability space law N (fun w => at_least t (claimed (at_stop stop [] (map f w)))) <= delta.
  Proof.
    intros Hq Ht Hd Hc. destruct close as (c & Hne & Hle).
    pose proof law_kernel as K. pose proof all_answers_distinct as U.
    assert (Full : forall z, In (f z) all_answers) by apply all_answers_complete.
    rewrite (seen_probability same_answer space all_answers law f U Full N
               (fun v => at_least t (claimed (at_stop stop [] v)))).
    assert (S : forall d, share_of same_answer all_answers (seen same_answer space law f) (Some d) = share X d).
    { intros d. rewrite seen_share by (auto; right; now apply in_map).
      unfold share, g. rewrite <- law_mean. unfold seen. apply sum_ext; intros z _. unfold answers.
      destruct (f z) as [d'|]; destruct (same_answer _ (Some d)) as [E|E]; try congruence; try ring.
      - injection E as ->. destruct (same d d); [ring|congruence].
      - destruct (same d' d); [subst; congruence|ring]. }
    apply (several_bound same_answer all_answers (seen same_answer space law f)
             (seen_kernel same_answer space all_answers law f K U Full) (Some y) (Some c) ltac:(congruence)
             t bets delta N stop claimed rival); auto.
    - apply bets_proper.
    - rewrite !S. lra.
    - intros past. destruct (rival_spec past) as [R1 R2]. split; auto. now apply R1.
  Qed.
End Close.

(* ---------------------------------------------------------------------------------- synonyms *)

Section Certificate.
  Context {A W C : Type}.
  Variable same : forall c d : C, {c = d} + {c <> d}.
  Variable dom : list A.
  Variable kernel : W -> A -> R.
  Variable synonym : W -> W -> Prop.
  Variable least : W -> R.
  Variable f : list A -> option C.
  Variable classes : list C.

  Hypothesis kernels : forall x, is_kernel dom (kernel x).
  Hypothesis least_unit : forall x, unit_range (least x).
  Hypothesis least_below : forall x x', synonym x x' -> least x <= overlap dom (kernel x) (kernel x').
  Hypothesis classes_distinct : NoDup classes.
  Hypothesis classes_complete : forall c, In c classes.

  Let share := share same dom kernel f.

  Definition attackable (radius : nat) (X : list W) (y : C) :=
    exists X' c, reachable synonym radius X X' /\ c <> y /\ share X' y <= share X' c.

  Variables (radius : nat) (X : list W) (sorted : list R) (q : R) (y : C).
  Hypothesis sorted_overlaps : Permutation (map least X) sorted /\ StronglySorted Rle sorted.
  Hypothesis q_enough : shift_bound sorted radius <= q.
  Hypothesis attacked : attackable radius X y.

  Lemma attacked_margin : exists c, c <> y /\ share X y - share X c <= 2 * q.
  Proof.
    destruct attacked as (X' & c & Hr & Hc & Hle), sorted_overlaps as [Hp Hs]. exists c. split; auto.
    destruct (answers_votes same f) as (V0 & V1 & V2).
    assert (M : forall d, Rabs (share X' d - share X d) <= shift_bound sorted radius).
    { intros d. unfold share. eapply g_moves; eauto. }
    pose proof (Rabs_le_both _ _ (M y)). pose proof (Rabs_le_both _ _ (M c)). lra.
  Qed.

  Let space := space dom X.
  Let law := law kernel X.
  Let answers_c := answers_c same f.

  (* Enumeration: own of w (whole) weights go to y, at most `rival` to each other class. *)
  Theorem enumeration_is_right (own rival w : Z) : (0 < w)%Z -> 0 <= q ->
    share X y = IZR own / IZR w -> (forall c, c <> y -> share X c <= IZR rival / IZR w) ->
    ~ (own - rival > Int_part (2 * q * IZR w))%Z.
  Proof. apply (close_enumeration same dom kernel f X q y attacked_margin). Qed.

  Theorem adaptive_two_labels t delta stop claimed N : 1 / 2 + q <= t -> 0 < t < 1 -> 0 < delta < 1 ->
    (forall past, t <= claimed past ->
       claimed past < 1 /\ 1 / delta <= e_of_counts (arcsine (claimed past)) past) ->
    probability space law N (fun w => at_least t (claimed (at_stop stop [] (map (answers_c y) w)))) <= delta.
  Proof. apply (close_two_labels same dom kernel f kernels X q y attacked_margin). Qed.

  Theorem binomial_is_right t delta (lower : nat -> R) N : 1 / 2 + q <= t -> 0 <= delta ->
    (forall k, 0 < lower k -> lower k <= 1 /\ tail N k (lower k) <= delta) ->
    probability space law N (fun w => negb (at_least (lower (successes (map (answers_c y) w))) t)) <= delta.
  Proof. apply (close_binomial same dom kernel f kernels X q y attacked_margin). Qed.

  Theorem hoeffding_is_right N t delta (number : R) (strongest : list (list A) -> R) :
    (0 < N)%nat -> 2 <= number -> 0 < delta < 1 -> t = sqrt (ln (number / delta) / (2 * INR N)) ->
    (forall c w, c <> y -> often (answers_c c) w <= strongest w) ->
    probability space law N
      (fun w => negb (at_least ((often (answers_c y) w - strongest w) / INR N) (2 * q + 2 * t))) <= delta.
  Proof. apply (close_hoeffding same dom kernel f kernels X q y attacked_margin). Qed.

  Theorem adaptive_several_labels t delta stop claimed N : 1 / 2 + q <= t -> 0 < t -> 0 < delta ->
    (forall past, t <= claimed past -> 1 / delta <=
       margin_e (claimed past) bets (votes same past y) (length past - votes same past y - rival same classes y past)
         (rival same classes y past)) ->
    probability space law N (fun w => at_least t (claimed (at_stop stop [] (map f w)))) <= delta.
  Proof.
    apply (close_several_labels same dom kernel f classes kernels classes_distinct classes_complete X q y
             attacked_margin).
  Qed.
End Certificate.

(* ------------------------------------------------------------------------------------- edits *)

(* Draws that delete are draws from kernels with one outcome more, and what the model answers at one is what it
   answers for the tokens that stay (Edits.v). So the same methods apply; q is at least the threshold less 1/2. *)
Section Edits.
  Context {A W C : Type}.
  Variable same : forall c d : C, {c = d} + {c <> d}.
  Variable dom : list A.
  Variable kernel : W -> A -> R.
  Variable p : R.
  Variable synonym : W -> W -> Prop.
  Variable least : W -> R. (* p + (1-p) s_x, or less *)
  Variable f : list A -> option C.
  Variable classes : list C.

  Hypothesis kernels : forall x, is_kernel dom (kernel x).
  Hypothesis p_range : 0 < p <= 1.
  Hypothesis least_unit : forall x, unit_range (least x).
  Hypothesis least_below :
    forall x x', synonym x x' -> least x <= p + (1 - p) * overlap dom (kernel x) (kernel x').
  Hypothesis classes_distinct : NoDup classes.
  Hypothesis classes_complete : forall c, In c classes.

  Let share (X : list W) (c : C) : R := g_deleting dom kernel p (answers same f) X c.

  (* Against R edits of a kind beside s synonyms. *)
  Definition editable (k : kind) (edits s : nat) (X : list W) (y : C) :=
    exists X' c, within synonym k edits s X X' /\ c <> y /\ share X' y <= share X' c.

  Variables (k : kind) (edits s : nat) (X : list W) (sorted : list R) (q' q : R) (y : C).
  Hypothesis sorted_overlaps : Permutation (map least X) sorted /\ StronglySorted Rle sorted.
  Hypothesis synonyms_enough : shift_bound sorted s <= q'.
  Hypothesis q_enough : threshold p k edits q' <= 1 / 2 + q.
  Hypothesis attacked : editable k edits s X y.

  Lemma edited_margin : exists c, c <> y /\ share X y - share X c <= 2 * q.
  Proof.
    destruct attacked as (X' & c & Hw & Hc & Hle), sorted_overlaps as [Hp Hs]. exists c. split; auto.
    destruct (answers_votes same f) as (V0 & V1 & V2). apply Rnot_lt_le. intros N.
    assert (share X' y > share X' c); [|lra].
    apply (edits_certificate dom kernel p kernels p_range synonym least least_unit least_below (answers same f) V0 V2
             k edits s X X' sorted q' y c Hw Hp Hs synonyms_enough).
    unfold lead, share in *. lra.
  Qed.

  Let outcomes_kernels x : is_kernel (outcomes dom) (deleting p (kernel x)).
  Proof. now apply deleting_kernel. Qed.

  (* One sample is a draw of the text that deletes; the model is asked what it keeps. *)
  Let space := space (outcomes dom) X.
  Let law := law (fun x => deleting p (kernel x)) X.
  Let reads (z : list (option A)) : option C := f (kept z).
  Let answers_c := answers_c same reads.

  Theorem edits_enumeration (own rival w : Z) : (0 < w)%Z -> 0 <= q ->
    share X y = IZR own / IZR w -> (forall c, c <> y -> share X c <= IZR rival / IZR w) ->
    ~ (own - rival > Int_part (2 * q * IZR w))%Z.
  Proof. apply (close_enumeration same (outcomes dom) (fun x => deleting p (kernel x)) reads X q y edited_margin). Qed.

  Theorem edits_two_labels t delta stop claimed N : 1 / 2 + q <= t -> 0 < t < 1 -> 0 < delta < 1 ->
    (forall past, t <= claimed past ->
       claimed past < 1 /\ 1 / delta <= e_of_counts (arcsine (claimed past)) past) ->
    probability space law N (fun w => at_least t (claimed (at_stop stop [] (map (answers_c y) w)))) <= delta.
  Proof. apply (close_two_labels same _ _ reads outcomes_kernels X q y edited_margin). Qed.

  Theorem edits_binomial t delta (lower : nat -> R) N : 1 / 2 + q <= t -> 0 <= delta ->
    (forall k, 0 < lower k -> lower k <= 1 /\ tail N k (lower k) <= delta) ->
    probability space law N (fun w => negb (at_least (lower (successes (map (answers_c y) w))) t)) <= delta.
  Proof. apply (close_binomial same _ _ reads outcomes_kernels X q y edited_margin). Qed.

  Theorem edits_hoeffding N t delta (number : R) (strongest : list (list (option A)) -> R) :
    (0 < N)%nat -> 2 <= number -> 0 < delta < 1 -> t = sqrt (ln (number / delta) / (2 * INR N)) ->
    (forall c w, c <> y -> often (answers_c c) w <= strongest w) ->
    probability space law N
      (fun w => negb (at_least ((often (answers_c y) w - strongest w) / INR N) (2 * q + 2 * t))) <= delta.
  Proof. apply (close_hoeffding same _ _ reads outcomes_kernels X q y edited_margin). Qed.

  Theorem edits_several_labels t delta stop claimed N : 1 / 2 + q <= t -> 0 < t -> 0 < delta ->
    (forall past, t <= claimed past -> 1 / delta <=
       margin_e (claimed past) bets (votes same past y) (length past - votes same past y - rival same classes y past)
         (rival same classes y past)) ->
    probability space law N (fun w => at_least t (claimed (at_stop stop [] (map reads w)))) <= delta.
  Proof.
    apply (close_several_labels same _ _ reads classes outcomes_kernels classes_distinct classes_complete X q y
             edited_margin).
  Qed.
End Edits.
