(* Folds: texts that are read alike get the same answer, whatever the classifier.

   A fold F takes a text as it is sent to what is read of it: characters brought to canonical ones, white space
   dropped, words cut. The classifier that is deployed answers f(F(X)). It needs no draw, no delta and no bound on how
   much X and X' differ that it answers alike where F(X') = F(X). And whatever is certified of F(X), for all Y' that
   an attacker can reach from it, holds for all X' with such an F(X'). *)
From Coq Require Import Reals List Permutation Sorted Lra Lia.
From Safer Require Import Smoothing Edits Groups.
Import ListNotations.
Local Open Scope R_scope.

(* ------------------------------------------------------------------------- any classifier *)

Theorem fold_invariant {S T C} (F : S -> T) (f : T -> C) X X' : F X' = F X -> f (F X') = f (F X).
Proof. intros E. now rewrite E. Qed.

(* With any certificate: `reach` is what the attacker may do with what is read, `claim` what is certified of it. *)
Theorem fold_composes {S T} (F : S -> T) (reach : T -> T -> Prop) (claim : T -> Prop) X :
  (forall Y', reach (F X) Y' -> claim Y') -> forall X', reach (F X) (F X') -> claim (F X').
Proof. auto. Qed.

(* Where F changes nothing the second time, the folded text is covered as it stands. *)
Theorem fold_idempotent {T} (F : T -> T) (reach : T -> T -> Prop) (claim : T -> Prop) X :
  (forall Y, F (F Y) = F Y) -> (forall Y, reach Y Y) ->
  (forall X', reach (F X) (F X') -> claim (F X')) -> claim (F (F X)) /\ F (F X) = F X.
Proof. intros Hi Hr H. split; [apply H; rewrite Hi; apply Hr|apply Hi]. Qed.

(* --------------------------------------------------------- with synonyms, edits and groups *)

Section Folded.
  Context {S A W C : Type}.
  Variable F : S -> list W. (* what is read of a text: its words or tokens *)
  Variable dom : list A.
  Variable kernel : W -> A -> R.
  Variable synonym : W -> W -> Prop.
  Variable vote : list A -> C -> R.
  Hypothesis kernels : forall x, is_kernel dom (kernel x).
  Hypothesis vote_nonneg : forall z c, 0 <= vote z c.
  Hypothesis vote_one : forall z c, vote z c <= 1.

  Theorem fold_synonyms least R X X' sorted q y :
    (forall x, unit_range (least x)) ->
    (forall x x', synonym x x' -> least x <= overlap dom (kernel x) (kernel x')) ->
    reachable synonym R (F X) (F X') -> Permutation (map least (F X)) sorted -> StronglySorted Rle sorted ->
    shift_bound sorted R <= q ->
    (forall c, c <> y -> g dom kernel vote (F X) y - g dom kernel vote (F X) c > 2 * q) ->
    forall c, c <> y -> g dom kernel vote (F X') y > g dom kernel vote (F X') c.
  Proof.
    intros U L. apply certificate_margin with (least := least); auto.
  Qed.

  Theorem fold_edits p least k R s X X' sorted q y c : 0 < p <= 1 ->
    (forall x, unit_range (least x)) ->
    (forall x x', synonym x x' -> least x <= p + (1 - p) * overlap dom (kernel x) (kernel x')) ->
    within synonym k R s (F X) (F X') -> Permutation (map least (F X)) sorted -> StronglySorted Rle sorted ->
    shift_bound sorted s <= q ->
    (1 + lead dom kernel p vote (F X) y c) / 2 > threshold p k R q ->
    g_deleting dom kernel p vote (F X') y > g_deleting dom kernel p vote (F X') c.
  Proof.
    intros P U L. apply edits_certificate with (least := least); auto.
  Qed.

  Theorem fold_groups {T} (canonical : W -> T) (group : T -> nat) G (same : forall c d : C, {c = d} + {c <> d}) f
      k R s X X' y c :
    (forall x x', synonym x x' -> canonical x = canonical x') -> within synonym k R s (F X) (F X') ->
    let votes Y := group_votes canonical group G same f (F Y) in
    (votes X c + group_cost k R < votes X y)%nat -> (votes X' c < votes X' y)%nat.
  Proof.
    intros E Hw votes. now apply (groups_certificate canonical group G same f synonym E k R s).
  Qed.
End Folded.

(* A fold that reads numbers by their last digit: idempotent, and other spellings are read alike. *)
Definition last_digits (X : list nat) : list nat := map (fun t => Nat.modulo t 10) X.

Example spelled_otherwise : last_digits [13; 27; 5]%nat = last_digits [3; 7; 105]%nat /\
  last_digits (last_digits [13; 27; 5]%nat) = last_digits [13; 27; 5]%nat.
Proof. split; reflexivity. Qed.

(* All at once. Texts are lists of numbers, read as odd or even; draws delete with probability 9/10; the model is that
   of `one_edit`. Whatever is sent that reads as [true] up to one edit gets the answer `true`: 1013 for 13, and any
   number put in beside it. *)
Definition odd_or_even (X : list nat) : list bool := map Nat.odd X.

Example folded_and_edited X' : within (fun _ _ => False) Any 1 0 (odd_or_even [13]%nat) (odd_or_even X') ->
  g_deleting tokens itself (9 / 10) (first 1) (odd_or_even X') true >
  g_deleting tokens itself (9 / 10) (first 1) (odd_or_even X') false.
Proof. exact (one_edit (odd_or_even X')). Qed.

Example covered : within (fun _ _ => False) Any 1 0 (odd_or_even [13]%nat) (odd_or_even [1013; 8]%nat).
Proof. exists 1%nat, 0%nat, 0%nat. split; [|lia]. apply edited_keep, edited_insert, edited_end. Qed.
