(* Votes of groups: an answer without draws, and how many edits it bears.

   Every token is read as its canonical one, which synonyms share, and goes to one of G groups by a function of that
   alone (a hash). The model reads the tokens of each group by themselves, in the order of the text; each group has
   one vote, or none where the answer is no class. A token put in or taken out changes what one group shows, a replaced
   one what two show, a synonym nothing. A group that changes can turn from y to its rival, so that the lead of y
   falls by two votes at most per group.

   Whole numbers alone: nothing here rests on an axiom, but for the last theorem, which has fractions. *)
From Coq Require Import Reals List Lra Lia PeanoNat.
From Safer Require Import Smoothing Edits.
Import ListNotations.

Section Groups.
  Context {W T C : Type}.
  Variable canonical : W -> T.
  Variable group : T -> nat.
  Variable G : nat.
  Variable same : forall c d : C, {c = d} + {c <> d}.
  Variable f : list T -> option C. (* the model; None: an answer that is no class *)
  Variable synonym : W -> W -> Prop.
  Hypothesis synonyms_alike : forall x x', synonym x x' -> canonical x = canonical x'.

  (* What group j shows of a text. *)
  Definition part (j : nat) (X : list W) : list T := filter (fun t => group t =? j) (map canonical X).

  Definition votes_for (X : list W) (c : C) (j : nat) : bool :=
    match f (part j X) with
    | Some d => if same d c then true else false
    | None => false
    end.

  Definition group_votes (X : list W) (c : C) : nat := length (filter (votes_for X c) (seq 0 G)).

  Lemma part_other j x X : group (canonical x) <> j -> part j (x :: X) = part j X.
  Proof. intros H. unfold part. cbn. apply Nat.eqb_neq in H. now rewrite H. Qed.

  Lemma part_cons j x x' X X' : canonical x = canonical x' -> part j X = part j X' ->
    part j (x :: X) = part j (x' :: X').
  Proof. unfold part. intros E H. cbn. rewrite E. destruct (group (canonical x') =? j); [now f_equal|exact H]. Qed.

  Lemma edited_touches i d r s X X' : edited synonym i d r s X X' ->
    exists touched, (length touched <= i + d + 2 * r)%nat /\ forall j, ~ In j touched -> part j X = part j X'.
  Proof.
    induction 1 as [s|i d r s x X X' _ (l & L & H)|i d r s x x' X X' Hs _ (l & L & H)
                   |i d r s x' X X' _ (l & L & H)|i d r s x X X' _ (l & L & H)|i d r s x x' X X' _ (l & L & H)].
    - exists []. split; [cbn; lia|reflexivity].
    - exists l. split; [lia|]. intros j Hj. apply part_cons; auto.
    - exists l. split; [lia|]. intros j Hj. apply part_cons; auto.
    - exists (group (canonical x') :: l). split; [cbn; lia|]. intros j Hj. cbn in Hj.
      rewrite (part_other j x' X') by tauto. apply H. tauto.
    - exists (group (canonical x) :: l). split; [cbn; lia|]. intros j Hj. cbn in Hj.
      rewrite (part_other j x X) by tauto. apply H. tauto.
    - exists (group (canonical x) :: group (canonical x') :: l). split; [cbn; lia|]. intros j Hj. cbn in Hj.
      rewrite (part_other j x X), (part_other j x' X') by tauto. apply H. tauto.
  Qed.

  (* At most i + d + 2r groups show another text. *)
  Theorem groups_touched i d r s X X' changed : edited synonym i d r s X X' ->
    NoDup changed -> (forall j, In j changed -> part j X <> part j X') -> (length changed <= i + d + 2 * r)%nat.
  Proof.
    intros He Hn Hc. destruct (edited_touches i d r s X X' He) as (touched & L & H).
    apply Nat.le_trans with (length touched); auto. apply NoDup_incl_length; auto.
    intros j Hj. destruct (in_dec Nat.eq_dec j touched); auto. exfalso. apply (Hc j Hj). auto.
  Qed.

  Lemma count_touched (u v : nat -> bool) touched js : NoDup js -> (forall j, ~ In j touched -> u j = v j) ->
    (length (filter u js) <= length (filter v js) + length touched)%nat.
  Proof.
    intros Hn H. rewrite <- app_length. apply NoDup_incl_length; [now apply NoDup_filter|].
    intros j Hj. apply filter_In in Hj as [Hj Hu]. apply in_or_app.
    destruct (in_dec Nat.eq_dec j touched) as [|Hd]; [now right|left]. apply filter_In. split; auto.
    now rewrite <- (H j Hd).
  Qed.

  (* So the votes of a class change by at most that many. *)
  Theorem groups_votes i d r s X X' c : edited synonym i d r s X X' ->
    (group_votes X c <= group_votes X' c + (i + d + 2 * r) /\
     group_votes X' c <= group_votes X c + (i + d + 2 * r))%nat.
  Proof.
    intros He. destruct (edited_touches i d r s X X' He) as (touched & L & H).
    assert (E : forall j, ~ In j touched -> votes_for X c j = votes_for X' c j)
      by (intros j Hj; unfold votes_for; now rewrite (H j Hj)).
    pose proof (count_touched (votes_for X c) (votes_for X' c) touched (seq 0 G) (seq_NoDup G 0) E).
    pose proof (count_touched (votes_for X' c) (votes_for X c) touched (seq 0 G) (seq_NoDup G 0)
                  (fun j Hj => eq_sym (E j Hj))).
    unfold group_votes. lia.
  Qed.

  Theorem groups_lead i d r s X X' y c : edited synonym i d r s X X' ->
    (group_votes X c + 2 * (i + d + 2 * r) < group_votes X y)%nat -> (group_votes X' c < group_votes X' y)%nat.
  Proof.
    intros He H. pose proof (groups_votes i d r s X X' c He). pose proof (groups_votes i d r s X X' y He). lia.
  Qed.

  (* The lead that R edits of a kind can take away. *)
  Definition group_cost (k : kind) (R : nat) : nat :=
    match k with
    | Any | Replace => 4 * R
    | Insert | Delete => 2 * R
    end.

  (* The certificate: a larger lead is one at every X', beside any number of synonyms. *)
  Theorem groups_certificate k R s X X' y c : within synonym k R s X X' ->
    (group_votes X c + group_cost k R < group_votes X y)%nat -> (group_votes X' c < group_votes X' y)%nat.
  Proof.
    intros (i & d & r & He & Hk) H. apply (groups_lead i d r s X X' y c He). destruct k; cbn in *; lia.
  Qed.

  (* Insertions and deletions in one script, but no replacement, cost as little. *)
  Theorem groups_without_replacement i d s X X' y c : edited synonym i d 0 s X X' ->
    (group_votes X c + 2 * (i + d) < group_votes X y)%nat -> (group_votes X' c < group_votes X' y)%nat.
  Proof. intros He H. apply (groups_lead i d 0 s X X' y c He). lia. Qed.

  (* In the form in which the program compares it: (1 + lead/G)/2 above 1/2 + q. *)
  Theorem groups_share k R s X X' y c q : within synonym k R s X X' -> (0 < G)%nat ->
    (INR (group_cost k R) / (2 * INR G) <= q)%R ->
    ((1 + (INR (group_votes X y) - INR (group_votes X c)) / INR G) / 2 > 1 / 2 + q)%R ->
    (group_votes X' c < group_votes X' y)%nat.
  Proof.
    intros Hw HG Hq H. apply (groups_certificate k R s X X' y c Hw). apply INR_lt. rewrite plus_INR.
    apply lt_0_INR in HG. set (n := INR G) in *. set (u := INR (group_votes X y)) in *.
    set (v := INR (group_votes X c)) in *. set (w := INR (group_cost k R)) in *.
    assert (L : (w / (2 * n) < (u - v) / n / 2)%R) by lra.
    apply (Rmult_lt_compat_r (2 * n)) in L; [|lra].
    replace (w / (2 * n) * (2 * n))%R with w in L by (field; lra).
    replace ((u - v) / n / 2 * (2 * n))%R with (u - v)%R in L by (field; lra). lra.
  Qed.
End Groups.

(* ------------------------------------------------------------------------------- computed *)

(* Four groups, tokens are numbers, and the group is the remainder. The model answers `false` for what the list
   names and `true` for everything else. *)
Definition remainder (t : nat) : nat := t mod 4.
Definition names (l : list (list nat)) (z : list nat) : option bool :=
  Some (if in_dec (list_eq_dec Nat.eq_dec) z l then false else true).
Definition tally (l : list (list nat)) (X : list nat) : nat * nat :=
  (group_votes (fun t => t) remainder 4 Bool.bool_dec (names l) X true,
   group_votes (fun t => t) remainder 4 Bool.bool_dec (names l) X false).
Definition no_synonym (x x' : nat) := False.

(* A lead of 4R votes is not enough: one token replaced, 0 by 5, and 4 to 0 becomes 2 to 2. *)
Example replace_sharp :
  within no_synonym Replace 1 0 [0; 4; 1; 2; 3] [5; 4; 1; 2; 3] /\
  tally [[4]; [5; 1]] [0; 4; 1; 2; 3] = (4, 0) /\ tally [[4]; [5; 1]] [5; 4; 1; 2; 3] = (2, 2) /\
  group_cost Replace 1 = 4.
Proof.
  split; [|repeat split; reflexivity]. exists 0, 0, 1. split; [|lia].
  apply edited_replace. repeat apply edited_keep. apply edited_end.
Qed.

(* Nor is one of 2R against insertions or deletions: 3 to 1 becomes 2 to 2. *)
Example insert_sharp :
  within no_synonym Insert 1 0 [0; 1; 2; 3] [0; 1; 2; 3; 4] /\
  tally [[3]; [0; 4]] [0; 1; 2; 3] = (3, 1) /\ tally [[3]; [0; 4]] [0; 1; 2; 3; 4] = (2, 2) /\ group_cost Insert 1 = 2.
Proof.
  split; [|repeat split; reflexivity]. exists 1, 0, 0. split; [|lia].
  repeat apply edited_keep. apply edited_insert, edited_end.
Qed.

Example delete_sharp :
  within no_synonym Delete 1 0 [0; 1; 2; 3; 4] [0; 1; 2; 3] /\
  tally [[3]; [0]] [0; 1; 2; 3; 4] = (3, 1) /\ tally [[3]; [0]] [0; 1; 2; 3] = (2, 2) /\ group_cost Delete 1 = 2.
Proof.
  split; [|repeat split; reflexivity]. exists 0, 1, 0. split; [|lia].
  repeat apply edited_keep. apply edited_delete, edited_end.
Qed.

(* 4 to 0 bears one insertion, of any token anywhere. *)
Example insert_certified X' : within no_synonym Insert 1 0 [0; 1; 2; 3] X' ->
  (snd (tally [[9]] X') < fst (tally [[9]] X'))%nat.
Proof.
  intros H. unfold tally. cbn [fst snd].
  apply (groups_certificate (fun t => t) remainder 4 Bool.bool_dec (names [[9]]) no_synonym) with
    (k := Insert) (R := 1) (s := 0) (X := [0; 1; 2; 3]); [intros ? ? []|exact H|].
  vm_compute. lia.
Qed.
