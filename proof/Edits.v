(* Edits: tokens put in, taken out or replaced by anything, under draws that delete.

   A text is a list of tokens. A draw deletes each token with probability p, independently, and takes what stays from
   its kernel; the model reads what is left, so that a deletion leaves no trace. Such a draw is one of Smoothing.v: a
   slot has one outcome more, None, of weight p, and the model reads the others alone. `deletion_is_choice` says
   the same in other words: choose which tokens stay, then draw those.

   Let X' arise from X by taking out a tokens and putting in b, anything anywhere, while of the tokens C that stay
   some become synonyms, C'. With probability p^a a draw of X is one of C; a draw of C equals one of C' with
   probability 1 - q'; with probability p^b a draw of X' is one of C'. That is all: with D = g(.,y) - g(.,c),

     D(X') >= p^(b-a) (D(X) - 1 + p^a - 2 p^a q') - 1 + p^b.

   Tokens are finitely many (those of at most so many bytes, for any bound); one that is no slot is its own
   kernel. p may depend on the length of the text wherever both texts are drawn with the same p; Rates.v has what it
   costs otherwise. *)
From Coq Require Import Reals List Permutation Sorted Lra Lia.
From Safer Require Import Smoothing.
Import ListNotations.
Local Open Scope R_scope.

(* -------------------------------------------------------------------- what an attacker may do *)

Inductive kind := Any | Replace | Insert | Delete.

Section Edited.
  Context {W : Type}.
  Variable synonym : W -> W -> Prop.

  (* X has the tokens of C in their order, and a others anywhere. *)
  Inductive inserted : nat -> list W -> list W -> Prop :=
  | inserted_end : inserted 0 [] []
  | inserted_same a x C X : inserted a C X -> inserted a (x :: C) (x :: X)
  | inserted_new a x C X : inserted a C X -> inserted (S a) C (x :: X).

  (* X' arises from X by i insertions, d deletions, r replacements and at most s synonyms. *)
  Inductive edited : nat -> nat -> nat -> nat -> list W -> list W -> Prop :=
  | edited_end s : edited 0 0 0 s [] []
  | edited_keep i d r s x X X' : edited i d r s X X' -> edited i d r s (x :: X) (x :: X')
  | edited_synonym i d r s x x' X X' :
      synonym x x' -> edited i d r s X X' -> edited i d r (S s) (x :: X) (x' :: X')
  | edited_insert i d r s x' X X' : edited i d r s X X' -> edited (S i) d r s X (x' :: X')
  | edited_delete i d r s x X X' : edited i d r s X X' -> edited i (S d) r s (x :: X) X'
  | edited_replace i d r s x x' X X' : edited i d r s X X' -> edited i d (S r) s (x :: X) (x' :: X').

  (* R edits of a kind beside s synonyms. *)
  Definition within (k : kind) (R s : nat) (X X' : list W) : Prop :=
    exists i d r, edited i d r s X X' /\
      match k with
      | Any => i + d + r <= R
      | Replace => i = 0 /\ d = 0 /\ r <= R
      | Insert => i <= R /\ d = 0 /\ r = 0
      | Delete => i = 0 /\ d <= R /\ r = 0
      end%nat.

  (* What stays, before and after. A replacement is one taken out and one put in. *)
  Theorem edited_common i d r s X X' : edited i d r s X X' ->
    exists C C', inserted (d + r) C X /\ reachable synonym s C C' /\ inserted (i + r) C' X'.
  Proof.
    induction 1 as [s|i d r s x X X' _ (C & C' & H & K & H')|i d r s x x' X X' Hs _ (C & C' & H & K & H')
                   |i d r s x' X X' _ (C & C' & H & K & H')|i d r s x X X' _ (C & C' & H & K & H')
                   |i d r s x x' X X' _ (C & C' & H & K & H')].
    - exists [], []. repeat split; constructor.
    - exists (x :: C), (x :: C'). repeat split; now constructor.
    - exists (x :: C), (x' :: C'). repeat split; now constructor.
    - exists C, C'. repeat split; auto. now constructor.
    - exists C, C'. repeat split; auto. now constructor.
    - exists C, C'. rewrite !Nat.add_succ_r. repeat split; auto; now constructor.
  Qed.

  Lemma edited_length i d r s X X' : edited i d r s X X' -> (length X' + d = length X + i)%nat.
  Proof. induction 1; cbn; lia. Qed.

  (* An attacker works step by step, on what the steps before left. No script of steps leads further than that
     many edits side by side. *)
  Inductive step : kind -> list W -> list W -> Prop :=
  | step_insert x X : step Insert X (x :: X)
  | step_delete x X : step Delete (x :: X) X
  | step_replace x x' X : step Replace (x :: X) (x' :: X)
  | step_later k x X X' : step k X X' -> step k (x :: X) (x :: X').

  Definition one (k k' : kind) : nat :=
    match k, k' with
    | Insert, Insert | Delete, Delete | Replace, Replace => 1
    | _, _ => 0
    end.

  Lemma edited_more i d r s X Y : edited i d r s X Y -> edited i d r (S s) X Y.
  Proof.
    induction 1; [apply edited_end|apply edited_keep|apply edited_synonym|apply edited_insert|apply edited_delete
                 |apply edited_replace]; auto.
  Qed.

  Lemma step_edited i d r s X Y : edited i d r s X Y -> forall k Z, step k Y Z ->
    exists i' d' r', edited i' d' r' s X Z /\
      (i' <= i + one Insert k /\ d' <= d + one Delete k /\ r' <= r + one Replace k /\
       i' + d' + r' <= S (i + d + r))%nat.
  Proof.
    induction 1 as [s|i d r s x X Y E IH|i d r s x x' X Y Hs E IH|i d r s x' X Y E IH|i d r s x X Y E IH
                   |i d r s x x' X Y E IH]; intros k Z H.
    - inversion H; subst. exists 1%nat, 0%nat, 0%nat. split; [apply edited_insert, edited_end|cbn; lia].
    - inversion H as [y|y|y y'|? ? ? Z' H']; subst.
      + exists (S i), d, r. split; [now apply edited_insert, edited_keep|cbn; lia].
      + exists i, (S d), r. split; [now apply edited_delete|cbn; lia].
      + exists i, d, (S r). split; [now apply edited_replace|cbn; lia].
      + destruct (IH _ _ H') as (i' & d' & r' & E' & B). exists i', d', r'. split; [now apply edited_keep|lia].
    - inversion H as [y|y|y y'|? ? ? Z' H']; subst.
      + exists (S i), d, r. split; [now apply edited_insert, edited_synonym|cbn; lia].
      + exists i, (S d), r. split; [now apply edited_delete, edited_more|cbn; lia].
      + exists i, d, (S r). split; [now apply edited_replace, edited_more|cbn; lia].
      + destruct (IH _ _ H') as (i' & d' & r' & E' & B). exists i', d', r'. split; [now apply edited_synonym|lia].
    - inversion H as [y|y|y y'|? ? ? Z' H']; subst.
      + exists (S (S i)), d, r. split; [now apply edited_insert, edited_insert|cbn; lia].
      + exists i, d, r. split; [assumption|cbn; lia].
      + exists (S i), d, r. split; [now apply edited_insert|cbn; lia].
      + destruct (IH _ _ H') as (i' & d' & r' & E' & B). exists (S i'), d', r'. split; [now apply edited_insert|lia].
    - destruct (IH _ _ H) as (i' & d' & r' & E' & B). exists i', (S d'), r'. split; [now apply edited_delete|lia].
    - inversion H as [y|y|y y'|? ? ? Z' H']; subst.
      + exists (S i), d, (S r). split; [now apply edited_insert, edited_replace|cbn; lia].
      + exists i, (S d), r. split; [now apply edited_delete|cbn; lia].
      + exists i, d, (S r). split; [now apply edited_replace|cbn; lia].
      + destruct (IH _ _ H') as (i' & d' & r' & E' & B). exists i', d', (S r'). split; [now apply edited_replace|lia].
  Qed.

  Inductive script : list kind -> list W -> list W -> Prop :=
  | script_end X : script [] X X
  | script_step k ks X Y Z : step k X Y -> script ks Y Z -> script (k :: ks) X Z.

  Lemma reachable_edited s X X' : reachable synonym s X X' -> edited 0 0 0 s X X'.
  Proof. induction 1; now constructor. Qed.

  Lemma script_edited ks Y Z : script ks Y Z -> forall i d r s X, edited i d r s X Y ->
    exists i' d' r', edited i' d' r' s X Z /\
      (i' + d' + r' <= length ks + (i + d + r))%nat /\
      (Forall (eq Insert) ks -> i' <= length ks + i /\ d' <= d /\ r' <= r)%nat /\
      (Forall (eq Delete) ks -> i' <= i /\ d' <= length ks + d /\ r' <= r)%nat /\
      (Forall (eq Replace) ks -> i' <= i /\ d' <= d /\ r' <= length ks + r)%nat.
  Proof.
    induction 1 as [X0|k ks X0 Y Z Hk _ IH]; intros i d r s X E.
    - exists i, d, r. split; [assumption|cbn; lia].
    - destruct (step_edited _ _ _ _ _ _ E _ _ Hk) as (i1 & d1 & r1 & E1 & B).
      destruct (IH _ _ _ _ _ E1) as (i' & d' & r' & E' & B0 & B1 & B2 & B3).
      exists i', d', r'. split; [assumption|]. cbn [length].
      split; [lia|]. split; [|split]; intros F; inversion F as [|? ? <- F']; subst; cbn in B.
      + specialize (B1 F'). lia.
      + specialize (B2 F'). lia.
      + specialize (B3 F'). lia.
  Qed.

  (* Synonyms and then any steps in any order, each of the kind. *)
  Theorem script_within k ks s X Y Z : reachable synonym s X Y -> script ks Y Z ->
    match k with Any => True | _ => Forall (eq k) ks end -> within k (length ks) s X Z.
  Proof.
    intros Hr Hs Hk. apply reachable_edited in Hr.
    destruct (script_edited ks Y Z Hs _ _ _ _ _ Hr) as (i & d & r & E & B0 & B1 & B2 & B3).
    exists i, d, r. split; [assumption|]. destruct k.
    - lia.
    - specialize (B3 Hk). lia.
    - specialize (B1 Hk). lia.
    - specialize (B2 Hk). lia.
  Qed.
End Edited.

(* ------------------------------------------------------------------------- draws that delete *)

Section Deletion.
  Context {A W : Type}.
  Variable dom : list A.         (* what a token that stays may become *)
  Variable kernel : W -> A -> R. (* of every token *)
  Variable p : R.                (* the chance of a token to be deleted *)
  Hypothesis kernels : forall x, is_kernel dom (kernel x).
  Hypothesis p_range : 0 < p <= 1.

  Definition outcomes : list (option A) := None :: map Some dom.

  Definition deleting (k : A -> R) (o : option A) : R :=
    match o with
    | None => p
    | Some a => (1 - p) * k a
    end.

  (* What the model reads. *)
  Fixpoint kept (z : list (option A)) : list A :=
    match z with
    | [] => []
    | None :: z' => kept z'
    | Some a :: z' => a :: kept z'
    end.

  Definition mean_deleting (X : list W) (h : list A -> R) : R :=
    mean outcomes (fun x => deleting (kernel x)) X (fun z => h (kept z)).

  Lemma deleting_kernel k : is_kernel dom k -> is_kernel outcomes (deleting k).
  Proof.
    intros [P S]. split.
    - intros [a|]; cbn; [|lra]. apply Rmult_le_pos; [lra|apply P].
    - unfold outcomes. cbn [sum]. rewrite sum_map. cbn [deleting].
      rewrite (sum_ext dom _ (fun a => k a * (1 - p))) by (intros; ring). rewrite sum_scale, S. ring.
  Qed.

  (* Deleted in both, or drawn from two kernels that share s. *)
  Theorem deletion_overlap k k' : overlap outcomes (deleting k) (deleting k') = p + (1 - p) * overlap dom k k'.
  Proof.
    unfold overlap, outcomes. cbn [sum]. rewrite sum_map. unfold common. cbn [deleting]. f_equal.
    - apply Rmin_left; lra.
    - rewrite Rmult_comm, <- sum_scale. apply sum_ext; intros a _. unfold Rmin.
      destruct (Rle_dec (k a) (k' a)) as [L|L], (Rle_dec ((1 - p) * k a) ((1 - p) * k' a)) as [M|M]; try ring.
      + exfalso. apply M. apply Rmult_le_compat_l; lra.
      + assert ((1 - p) * k' a <= (1 - p) * k a) by (apply Rmult_le_compat_l; lra). lra.
  Qed.

  Lemma mean_deleting_cons x X h : mean_deleting (x :: X) h =
    p * mean_deleting X h + (1 - p) * sum dom (fun a => kernel x a * mean_deleting X (fun z => h (a :: z))).
  Proof.
    unfold mean_deleting, mean. cbn [map expect]. unfold outcomes at 1. cbn [sum]. rewrite sum_map.
    cbn [deleting kept]. f_equal. rewrite Rmult_comm, <- sum_scale. apply sum_ext; intros a _. ring.
  Qed.

  Lemma mean_deleting_unit X h : (forall z, unit_range (h z)) -> unit_range (mean_deleting X h).
  Proof.
    intros H. apply expect_unit; [|intros z; apply H].
    apply Forall_forall; intros k Hk. apply in_map_iff in Hk as (x & <- & _). apply deleting_kernel, kernels.
  Qed.

  Lemma mean_deleting_minus X h h' : mean_deleting X (fun z => h z - h' z) = mean_deleting X h - mean_deleting X h'.
  Proof. apply (expect_minus outcomes _ (fun z => h (kept z)) (fun z => h' (kept z))). Qed.

  (* The same draws, told otherwise: a coin per token says what stays, and that is drawn from its kernels. *)
  Fixpoint choose (stays : list bool) (X : list W) : list W :=
    match stays, X with
    | true :: m, x :: X' => x :: choose m X'
    | false :: m, _ :: X' => choose m X'
    | _, _ => []
    end.

  Definition coin (stays : bool) : R := if stays then 1 - p else p.

  Lemma expect_sum {B D} (bs : list B) ks (l : list D) (c : D -> R) (F : D -> list B -> R) :
    expect bs ks (fun z => sum l (fun a => c a * F a z)) = sum l (fun a => c a * expect bs ks (F a)).
  Proof.
    induction l as [|a l IH]; cbn [sum].
    - rewrite (expect_ext bs ks _ (fun _ => 0 * 0)) by (intros; ring). rewrite expect_scale. ring.
    - rewrite expect_plus, IH. f_equal.
      rewrite (expect_ext bs ks _ (fun z => F a z * c a)) by (intros; ring). rewrite expect_scale. ring.
  Qed.

  Theorem deletion_is_choice X : forall h, mean_deleting X h =
    expect [false; true] (repeat coin (length X)) (fun stays => mean dom kernel (choose stays X) h).
  Proof.
    induction X as [|x X IH]; intros h; [reflexivity|].
    rewrite mean_deleting_cons. cbn [length repeat expect sum choose coin]. rewrite <- IH, Rplus_0_r. do 2 f_equal.
    rewrite (sum_ext dom _ (fun a => kernel x a * expect [false; true] (repeat coin (length X))
                                (fun stays => mean dom kernel (choose stays X) (fun z => h (a :: z)))))
      by (intros a _; now rewrite IH).
    rewrite <- (expect_sum [false; true] (repeat coin (length X)) dom (kernel x)
                  (fun a stays => mean dom kernel (choose stays X) (fun z => h (a :: z)))). reflexivity.
  Qed.

  (* ------------------------------------------------------------------------------ the theorem *)

  Lemma power_range n : 0 < p ^ n <= 1.
  Proof.
    split; [apply pow_lt; lra|]. induction n as [|n IH]; cbn; [lra|].
    replace 1 with (1 * 1) by ring. apply Rmult_le_compat; try lra. left. apply pow_lt; lra.
  Qed.

  Lemma deletion_bounds a C X : inserted a C X -> forall h, (forall z, unit_range (h z)) ->
    p ^ a * mean_deleting C h <= mean_deleting X h <= p ^ a * mean_deleting C h + (1 - p ^ a).
  Proof.
    induction 1 as [|a x C X _ IH|a x C X _ IH]; intros h Hh.
    - cbn [pow]. lra.
    - rewrite !mean_deleting_cons. pose proof (IH h Hh) as I0.
      set (mC := fun b => mean_deleting C (fun z => h (b :: z))).
      set (mX := fun b => mean_deleting X (fun z => h (b :: z))).
      destruct (kernels x) as [P S]. pose proof (power_range a) as Q.
      assert (I1 : forall b, p ^ a * mC b <= mX b <= p ^ a * mC b + (1 - p ^ a))
        by (intros b; apply IH; intros z; apply Hh).
      assert (L : sum dom (fun b => kernel x b * mC b) * p ^ a <= sum dom (fun b => kernel x b * mX b)).
      { rewrite <- sum_scale. apply sum_le; intros b _. destruct (I1 b) as [I2 _].
        replace (kernel x b * mC b * p ^ a) with (kernel x b * (p ^ a * mC b)) by ring.
        apply Rmult_le_compat_l; [apply P|exact I2]. }
      assert (U : sum dom (fun b => kernel x b * mX b) <= sum dom (fun b => kernel x b * mC b) * p ^ a + (1 - p ^ a)).
      { replace (1 - p ^ a) with (sum dom (kernel x) * (1 - p ^ a)) by (rewrite S; ring).
        rewrite <- !sum_scale, <- sum_plus. apply sum_le; intros b _. destruct (I1 b) as [_ I2].
        replace (kernel x b * mC b * p ^ a + kernel x b * (1 - p ^ a))
          with (kernel x b * (p ^ a * mC b + (1 - p ^ a))) by ring.
        apply Rmult_le_compat_l; [apply P|exact I2]. }
      change (p ^ a * (p * mean_deleting C h + (1 - p) * sum dom (fun b => kernel x b * mC b)) <=
              p * mean_deleting X h + (1 - p) * sum dom (fun b => kernel x b * mX b) <=
              p ^ a * (p * mean_deleting C h + (1 - p) * sum dom (fun b => kernel x b * mC b)) + (1 - p ^ a)).
      set (sC := sum dom (fun b => kernel x b * mC b)) in *. set (sX := sum dom (fun b => kernel x b * mX b)) in *.
      assert (M0 : p * (p ^ a * mean_deleting C h) <= p * mean_deleting X h) by (apply Rmult_le_compat_l; lra).
      assert (M1 : p * mean_deleting X h <= p * (p ^ a * mean_deleting C h + (1 - p ^ a)))
        by (apply Rmult_le_compat_l; lra).
      assert (M2 : (1 - p) * (sC * p ^ a) <= (1 - p) * sX) by (apply Rmult_le_compat_l; lra).
      assert (M3 : (1 - p) * sX <= (1 - p) * (sC * p ^ a + (1 - p ^ a))) by (apply Rmult_le_compat_l; lra).
      lra.
    - rewrite mean_deleting_cons. destruct (IH h Hh) as [I0 I1]. cbn [pow].
      set (s := sum dom (fun b => kernel x b * mean_deleting X (fun z => h (b :: z)))).
      assert (B : unit_range s).
      { destruct (kernels x) as [P S]. split.
        - apply sum_nonneg; intros b _. apply Rmult_le_pos; [apply P|]. apply mean_deleting_unit. intros z; apply Hh.
        - rewrite <- S. apply sum_le; intros b _. rewrite <- (Rmult_1_r (kernel x b)) at 2.
          apply Rmult_le_compat_l; [apply P|]. apply mean_deleting_unit. intros z; apply Hh. }
      destruct B as [B0 B1].
      assert (M0 : p * (p ^ a * mean_deleting C h) <= p * mean_deleting X h) by (apply Rmult_le_compat_l; lra).
      assert (M1 : p * mean_deleting X h <= p * (p ^ a * mean_deleting C h + (1 - p ^ a)))
        by (apply Rmult_le_compat_l; lra).
      assert (M2 : 0 <= (1 - p) * s) by (apply Rmult_le_pos; lra).
      assert (M3 : (1 - p) * s <= (1 - p) * 1) by (apply Rmult_le_compat_l; lra). lra.
  Qed.

  (* 1. With probability p^a a draw of X is a draw of C; the other draws have some share of their own. *)
  Theorem deletion_splits a C X h : inserted a C X -> (forall z, unit_range (h z)) ->
    exists other, unit_range other /\ mean_deleting X h = p ^ a * mean_deleting C h + (1 - p ^ a) * other.
  Proof.
    intros H Hh. pose proof (deletion_bounds a C X H h Hh) as B. pose proof (power_range a) as Q.
    destruct (Req_dec (p ^ a) 1) as [E|E].
    - exists 0. unfold unit_range. split; [lra|]. rewrite E in *. lra.
    - exists ((mean_deleting X h - p ^ a * mean_deleting C h) / (1 - p ^ a)).
      assert (N : 0 < 1 - p ^ a) by lra. split; [|field; lra].
      pose proof (Rinv_0_lt_compat _ N) as I. unfold Rdiv. split; [apply Rmult_le_pos; lra|].
      apply Rmult_le_reg_r with (1 - p ^ a); auto. rewrite Rmult_assoc, Rinv_l by lra. lra.
  Qed.

  (* 2. Synonyms among the tokens that stay. *)
  Section Synonyms.
    Variable synonym : W -> W -> Prop.
    Variable least : W -> R. (* p + (1-p) s_x, or less *)
    Hypothesis least_unit : forall x, unit_range (least x).
    Hypothesis least_below :
      forall x x', synonym x x' -> least x <= p + (1 - p) * overlap dom (kernel x) (kernel x').

    Lemma inserted_more (F : W -> R) a C X : inserted a C X -> exists more, Permutation (map F C ++ more) (map F X).
    Proof.
      induction 1 as [|a x C X _ (more & H)|a x C X _ (more & H)].
      - exists []. constructor.
      - exists more. cbn. now constructor.
      - exists (F x :: more). cbn. rewrite <- Permutation_middle. now constructor.
    Qed.

    (* The overlaps of all tokens of X count, also of those that are taken out: no fewer. *)
    Theorem synonyms_shift a s C C' X sorted h : inserted a C X -> reachable synonym s C C' ->
      Permutation (map least X) sorted -> StronglySorted Rle sorted -> (forall z, unit_range (h z)) ->
      Rabs (mean_deleting C' h - mean_deleting C h) <= shift_bound sorted s.
    Proof.
      intros Hi Hr Hp Hs Hh. unfold shift_bound.
      assert (K : forall x, is_kernel outcomes (deleting (kernel x))) by (intros; apply deleting_kernel, kernels).
      eapply Rle_trans; [apply smoothing_shift|].
      { clear -Hr K. induction Hr; cbn; constructor; auto. }
      { intros z. apply Hh. }
      destruct (changed_slots outcomes (fun x => deleting (kernel x)) synonym least K least_unit) with (2 := Hr)
        as (chosen & rest & Hc & Hl & Hle).
      { intros x x' Hx. rewrite deletion_overlap. now apply least_below. }
      destruct (inserted_more least a C X Hi) as (more & Hm).
      assert (product (firstn s sorted) <= product chosen); [|lra].
      apply smallest_product with (rest ++ more); auto.
      - apply Forall_forall; intros y Hy. apply Permutation_sym in Hp. apply (Permutation_in _ Hp) in Hy.
        apply in_map_iff in Hy as (w & <- & _). apply least_unit.
      - rewrite <- Hp, <- Hm, <- Hc. now rewrite app_assoc.
    Qed.

    (* 3. Together, for the share of one class. q may be rounded up. *)
    Theorem edits_share i d r s X X' sorted q h : edited synonym i d r s X X' ->
      Permutation (map least X) sorted -> StronglySorted Rle sorted -> shift_bound sorted s <= q ->
      (forall z, unit_range (h z)) ->
      let a := (d + r)%nat in let b := (i + r)%nat in
      p ^ b / p ^ a * (mean_deleting X h - 1 + p ^ a - p ^ a * q) <= mean_deleting X' h
        <= p ^ b / p ^ a * (mean_deleting X h + p ^ a * q) + 1 - p ^ b.
    Proof.
      intros He Hp Hs Hq Hh a b. destruct (edited_common synonym i d r s X X' He) as (C & C' & HC & Hr & HC').
      fold a in HC. fold b in HC'.
      pose proof (deletion_bounds a C X HC h Hh) as [B0 B1]. pose proof (deletion_bounds b C' X' HC' h Hh) as [B2 B3].
      pose proof (Rabs_le_both _ _ (synonyms_shift a s C C' X sorted h HC Hr Hp Hs Hh)) as [S0 S1].
      pose proof (power_range a) as [Pa _]. pose proof (power_range b) as [Pb _].
      pose proof (Rinv_0_lt_compat _ Pa) as Ia.
      set (m := mean_deleting X h) in *. set (u := mean_deleting C h) in *. set (v := mean_deleting C' h) in *.
      assert (E0 : (m - 1 + p ^ a - p ^ a * q) * / p ^ a <= v).
      { apply Rmult_le_reg_r with (p ^ a); auto. rewrite Rmult_assoc, Rinv_l by lra.
        assert (p ^ a * (u - q) <= p ^ a * v) by (apply Rmult_le_compat_l; lra). lra. }
      assert (E1 : v <= (m + p ^ a * q) * / p ^ a).
      { apply Rmult_le_reg_r with (p ^ a); auto. rewrite (Rmult_assoc _ (/ p ^ a)), Rinv_l by lra.
        assert (p ^ a * v <= p ^ a * (u + q)) by (apply Rmult_le_compat_l; lra). lra. }
      apply (Rmult_le_compat_l (p ^ b)) in E0; [|lra]. apply (Rmult_le_compat_l (p ^ b)) in E1; [|lra].
      unfold Rdiv. lra.
    Qed.

    (* ----------------------------------------------------------------------- two classes *)

    Section Votes.
      Context {C : Type}.
      Variable vote : list A -> C -> R. (* the share of each answer at what is read, as in Smoothing.v *)
      Hypothesis vote_nonneg : forall z c, 0 <= vote z c.
      Hypothesis vote_pair : forall z c d, c <> d -> vote z c + vote z d <= 1.
      Hypothesis vote_one : forall z c, vote z c <= 1.

      Definition g_deleting (X : list W) (c : C) : R := mean_deleting X (fun z => vote z c).

      Definition lead (X : list W) (y c : C) : R := g_deleting X y - g_deleting X c.

      Lemma vote_unit c z : unit_range (vote z c).
      Proof. split; [apply vote_nonneg|apply vote_one]. Qed.

      Lemma g_deleting_unit X c : unit_range (g_deleting X c).
      Proof. apply mean_deleting_unit, vote_unit. Qed.

      Lemma g_deleting_pair X c d : c <> d -> g_deleting X c + g_deleting X d <= 1.
      Proof.
        intros H. apply (g_pair outcomes (fun x => deleting (kernel x))) with (vote := fun z => vote (kept z)); auto.
        intros; apply deleting_kernel, kernels.
      Qed.

      Lemma lead_one X y c : lead X y c <= 1.
      Proof.
        unfold lead. pose proof (g_deleting_unit X y) as [_ H]. pose proof (g_deleting_unit X c) as [H' _]. lra.
      Qed.

      Theorem edits_lead i d r s X X' sorted q y c : edited synonym i d r s X X' ->
        Permutation (map least X) sorted -> StronglySorted Rle sorted -> shift_bound sorted s <= q ->
        let a := (d + r)%nat in let b := (i + r)%nat in
        p ^ b / p ^ a * (lead X y c - 1 + p ^ a - 2 * p ^ a * q) - 1 + p ^ b <= lead X' y c.
      Proof.
        intros He Hp Hs Hq a b.
        pose proof (edits_share i d r s X X' sorted q _ He Hp Hs Hq (vote_unit y)) as [L _].
        pose proof (edits_share i d r s X X' sorted q _ He Hp Hs Hq (vote_unit c)) as [_ U].
        cbn zeta in L, U. fold a b in L, U. unfold lead, g_deleting.
        set (f := p ^ b / p ^ a) in *.
        set (m := mean_deleting X (fun z => vote z y)) in *. set (n := mean_deleting X (fun z => vote z c)) in *.
        replace (f * (m - n - 1 + p ^ a - 2 * p ^ a * q))
          with (f * (m - 1 + p ^ a - p ^ a * q) - f * (n + p ^ a * q)) by ring.
        lra.
      Qed.

      (* The threshold on (1 + lead)/2 for a tokens out and b in. *)
      Definition threshold_of (q : R) (a b : nat) : R := 1 + p ^ a / p ^ b / 2 - p ^ a * (1 - q).

      (* The bound on the lead is above 0 exactly there. *)
      Lemma threshold_exact q a b x :
        (1 + x) / 2 > threshold_of q a b <-> p ^ b / p ^ a * (x - 1 + p ^ a - 2 * p ^ a * q) - 1 + p ^ b > 0.
      Proof.
        unfold threshold_of. pose proof (power_range a) as [Pa _]. pose proof (power_range b) as [Pb _].
        assert (F : 0 < p ^ b / p ^ a) by now apply Rdiv_lt_0_compat.
        assert (E : p ^ b / p ^ a * (x - 1 + p ^ a - 2 * p ^ a * q) - 1 + p ^ b =
                    p ^ b / p ^ a * (2 * ((1 + x) / 2 - (1 + p ^ a / p ^ b / 2 - p ^ a * (1 - q))))) by (field; lra).
        rewrite E. split; intros H.
        - apply Rmult_lt_0_compat; lra.
        - apply Rnot_le_gt. intros N. set (w := 2 * _) in H.
          assert (w <= 0) by (unfold w; lra).
          assert (p ^ b / p ^ a * w <= p ^ b / p ^ a * 0) by (apply Rmult_le_compat_l; lra). lra.
      Qed.

      (* -------------------------------------------------------------------- R edits of a kind *)

      Definition threshold (k : kind) (edits : nat) (q : R) : R :=
        match k with
        | Any | Replace => 3 / 2 - p ^ edits * (1 - q)
        | Insert => 1 / (2 * p ^ edits) + q
        | Delete => 1 - p ^ edits * (1 / 2 - q)
        end.

      Lemma power_falls n m : (n <= m)%nat -> p ^ m <= p ^ n.
      Proof.
        intros H. replace m with (n + (m - n))%nat by lia. rewrite pow_add. pose proof (power_range n) as Pn.
        pose proof (power_range (m - n)) as Pm. rewrite <- (Rmult_1_r (p ^ n)) at 2. apply Rmult_le_compat_l; lra.
      Qed.

      Lemma inverse_rises n m : (n <= m)%nat -> / p ^ n <= / p ^ m.
      Proof. intros H. apply Rinv_le_contravar; [apply power_range|now apply power_falls]. Qed.

      (* Where p^R (1-q) > 1/2, no a, b up to R are worse than a = b = R. *)
      Theorem worst_edits q a b R : (a <= R)%nat -> (b <= R)%nat -> p ^ R * (1 - q) > 1 / 2 ->
        threshold_of q a b <= threshold_of q R R.
      Proof.
        intros Ha Hb Hq. unfold threshold_of, Rdiv. pose proof (power_range a) as Pa. pose proof (power_range R) as PR.
        pose proof (power_falls a R Ha) as F. pose proof (inverse_rises b R Hb) as I.
        apply Rle_trans with (1 + p ^ a * (/ p ^ R * / 2 - (1 - q))).
        - assert (p ^ a * / p ^ b <= p ^ a * / p ^ R) by (apply Rmult_le_compat_l; lra). lra.
        - assert (N : / p ^ R * / 2 <= 1 - q).
          { apply Rmult_le_reg_l with (p ^ R); [lra|]. rewrite <- Rmult_assoc, Rinv_r by lra. lra. }
          assert (p ^ R * (1 - q - / p ^ R * / 2) <= p ^ a * (1 - q - / p ^ R * / 2)) by (apply Rmult_le_compat_r; lra).
          lra.
      Qed.

      (* Elsewhere nothing is certified: (1 + lead)/2 is at most 1. *)
      Lemma hopeless q R : p ^ R * (1 - q) <= 1 / 2 -> threshold Any R q >= 1.
      Proof. cbn. lra. Qed.

      Lemma threshold_enough k R q i d r x : x <= 1 -> (1 + x) / 2 > threshold k R q ->
        match k with
        | Any => i + d + r <= R
        | Replace => i = 0 /\ d = 0 /\ r <= R
        | Insert => i <= R /\ d = 0 /\ r = 0
        | Delete => i = 0 /\ d <= R /\ r = 0
        end%nat ->
        (1 + x) / 2 > threshold_of q (d + r) (i + r).
      Proof.
        intros Hx Ht Hk. pose proof (power_range R) as PR.
        assert (Both : (1 + x) / 2 > 3 / 2 - p ^ R * (1 - q) -> (d + r <= R)%nat -> (i + r <= R)%nat ->
                       (1 + x) / 2 > threshold_of q (d + r) (i + r)).
        { intros H Ha Hb. apply Rgt_ge_trans with (threshold_of q R R).
          - unfold threshold_of. replace (p ^ R / p ^ R) with 1 by (field; lra). lra.
          - apply Rle_ge, worst_edits; auto. lra. }
        destruct k; cbn in Ht.
        - apply Both; auto; lia.
        - apply Both; auto; lia.
        - destruct Hk as (Hi & -> & ->). unfold threshold_of. cbn [Nat.add pow]. rewrite Nat.add_0_r.
          pose proof (inverse_rises i R Hi). unfold Rdiv in *. rewrite Rinv_mult in Ht. lra.
        - destruct Hk as (-> & Hd & ->). unfold threshold_of. cbn [Nat.add pow]. rewrite Nat.add_0_r.
          pose proof (power_falls d R Hd). pose proof (power_range d).
          assert (Hq : 0 <= 1 / 2 - q).
          { apply Rnot_lt_le. intros N.
            assert (p ^ R * (1 / 2 - q) <= p ^ R * 0) by (apply Rmult_le_compat_l; lra). lra. }
          assert (p ^ R * (1 / 2 - q) <= p ^ d * (1 / 2 - q)) by (apply Rmult_le_compat_r; lra).
          unfold Rdiv in *. rewrite Rinv_1. lra.
      Qed.

      (* The certificate against R edits of a kind beside s synonyms. *)
      Theorem edits_certificate k R s X X' sorted q y c : within synonym k R s X X' ->
        Permutation (map least X) sorted -> StronglySorted Rle sorted -> shift_bound sorted s <= q ->
        (1 + lead X y c) / 2 > threshold k R q -> g_deleting X' y > g_deleting X' c.
      Proof.
        intros (i & d & r & He & Hk) Hp Hs Hq Ht.
        pose proof (edits_lead i d r s X X' sorted q y c He Hp Hs Hq) as L. cbn zeta in L.
        apply (threshold_enough k R q i d r _ (lead_one X y c)) in Ht; [|exact Hk].
        apply threshold_exact in Ht. unfold lead in *. lra.
      Qed.

      (* The same from the share of y alone, whatever share of the answers is no class. *)
      Theorem edits_certificate_half k R s X X' sorted q y : within synonym k R s X X' ->
        Permutation (map least X) sorted -> StronglySorted Rle sorted -> shift_bound sorted s <= q ->
        g_deleting X y > threshold k R q -> forall c, c <> y -> g_deleting X' y > g_deleting X' c.
      Proof.
        intros Hw Hp Hs Hq Ht c Hc. apply (edits_certificate k R s X X' sorted q y c); auto.
        pose proof (g_deleting_pair X c y Hc). unfold lead. lra.
      Qed.
    End Votes.
  End Synonyms.
End Deletion.

(* ------------------------------------------------------------------------- a rate by length *)

(* p may depend on the number of tokens: the theorem needs no more than that both texts are drawn with the same p.
   Replacements keep the length, so for them any rate will do; Rates.v has what it costs where edits change it. *)
Section Rate.
  Context {A W C : Type}.
  Variable dom : list A.
  Variable kernel : W -> A -> R.
  Variable rate : nat -> R.
  Variable synonym : W -> W -> Prop.
  Variable vote : list A -> C -> R.
  Hypothesis kernels : forall x, is_kernel dom (kernel x).
  Hypothesis vote_nonneg : forall z c, 0 <= vote z c.
  Hypothesis vote_one : forall z c, vote z c <= 1.

  Definition g_rate (X : list W) (c : C) : R := g_deleting dom kernel (rate (length X)) vote X c.

  Variables (X : list W) (least : W -> R) (sorted : list R).
  Let p := rate (length X).
  Hypothesis p_range : 0 < p <= 1.
  Hypothesis least_unit : forall x, unit_range (least x).
  Hypothesis least_below :
    forall x x', synonym x x' -> least x <= p + (1 - p) * overlap dom (kernel x) (kernel x').
  Hypothesis sorted_overlaps : Permutation (map least X) sorted /\ StronglySorted Rle sorted.

  Theorem rate_certificate k R s X' q y c : within synonym k R s X X' -> rate (length X') = rate (length X) ->
    shift_bound sorted s <= q -> (1 + (g_rate X y - g_rate X c)) / 2 > threshold p k R q -> g_rate X' y > g_rate X' c.
  Proof.
    intros Hw Hl Hq Ht. unfold g_rate in *. rewrite Hl. destruct sorted_overlaps as [Hp Hs].
    now apply (edits_certificate dom kernel p kernels p_range synonym least least_unit least_below vote vote_nonneg
                 vote_one k R s X X' sorted q y c).
  Qed.

  Corollary rate_replace R s X' q y c : within synonym Replace R s X X' -> shift_bound sorted s <= q ->
    (1 + (g_rate X y - g_rate X c)) / 2 > threshold p Replace R q -> g_rate X' y > g_rate X' c.
  Proof.
    intros Hw. apply (rate_certificate Replace R s X' q y c Hw). f_equal.
    destruct Hw as (i & d & r & He & -> & -> & _). pose proof (edited_length _ _ _ _ _ _ _ He). lia.
  Qed.
End Rate.

(* ------------------------------------------------------------------ the bounds are attained *)

(* Two tokens, each its own kernel, and two classes. The model answers with the first token that it reads; when it
   reads none, with `true` in a share v of the cases. *)
Section Sharp.
  Variable p : R.
  Hypothesis p_range : 0 < p <= 1.

  Definition tokens : list bool := [true; false].
  Definition itself (x a : bool) : R := if Bool.eqb x a then 1 else 0.
  Definition first (v : R) (z : list bool) (c : bool) : R :=
    match z with
    | [] => if c then v else 1 - v
    | t :: _ => if Bool.eqb t c then 1 else 0
    end.

  Lemma itself_kernel x : is_kernel tokens (itself x).
  Proof. destruct x; split; try (intros []); cbn; lra. Qed.

  Lemma itself_overlap x y : overlap tokens (itself x) (itself y) = itself x y.
  Proof.
    unfold overlap, common, tokens. destruct x, y; cbn; unfold Rmin;
      repeat match goal with |- context [Rle_dec ?u ?v] => destruct (Rle_dec u v) end; lra.
  Qed.

  Lemma first_votes v : unit_range v ->
    (forall z c, 0 <= first v z c) /\ (forall z c d, c <> d -> first v z c + first v z d <= 1) /\
    (forall z c, first v z c <= 1).
  Proof.
    intros [H0 H1]. repeat split; intros [|t z] c; try intros d Hd; try destruct d; destruct c; try destruct t;
      cbn; try lra; congruence.
  Qed.

  Lemma repeat_step t n h : mean_deleting tokens itself p (t :: repeat t n) h =
    p * mean_deleting tokens itself p (repeat t n) h +
    (1 - p) * mean_deleting tokens itself p (repeat t n) (fun z => h (t :: z)).
  Proof. rewrite mean_deleting_cons. destruct t; cbn [sum tokens itself Bool.eqb]; ring. Qed.

  (* Of n equal tokens a draw has none with probability p^n. *)
  Lemma repeat_mean t n : forall h v, (forall z, h (t :: z) = v) ->
    mean_deleting tokens itself p (repeat t n) h = p ^ n * h [] + (1 - p ^ n) * v.
  Proof.
    induction n as [|n IH]; intros h v H; [cbn; ring|]. cbn [repeat]. rewrite repeat_step, (IH h v H).
    rewrite (IH (fun z => h (t :: z)) v) by (intros; apply H). rewrite H. cbn [pow]. ring.
  Qed.

  Lemma repeat_lead v t n :
    lead tokens itself p (first v) (repeat t n) true false =
    p ^ n * (2 * v - 1) + (1 - p ^ n) * (if t then 1 else -1).
  Proof.
    unfold lead, g_deleting.
    rewrite (repeat_mean t n (fun z => first v z true) (if t then 1 else 0)) by (intros; now destruct t).
    rewrite (repeat_mean t n (fun z => first v z false) (if t then 0 else 1)) by (intros; now destruct t).
    cbn. destruct t; ring.
  Qed.

  Lemma all_edited {W} (synonym : W -> W -> Prop) t u n s :
    edited synonym 0 n 0 s (repeat t n) [] /\ edited synonym n 0 0 s [] (repeat u n) /\
    edited synonym 0 0 n s (repeat t n) (repeat u n).
  Proof.
    induction n as [|n (H1 & H2 & H3)]; cbn [repeat]; repeat split; try apply edited_end;
      [now apply edited_delete|now apply edited_insert|now apply edited_replace].
  Qed.

  Lemma synonyms_edited {W} (synonym : W -> W -> Prop) t u n : synonym t u -> forall s,
    edited synonym 0 0 n s (repeat t (s + n)) (repeat u (s + n)).
  Proof.
    intros H. induction s as [|s IH]; cbn [Nat.add repeat]; [apply all_edited|now apply edited_synonym].
  Qed.

  (* At the threshold, y need not stay ahead: for every kind, p and R for which anything can be certified. *)
  Theorem edits_sharp k R : (k = Delete \/ 1 / 2 <= p ^ R) ->
    exists v X X', unit_range v /\ within (fun _ _ => False) k R 0 X X' /\
      (1 + lead tokens itself p (first v) X true false) / 2 = threshold p k R 0 /\
      lead tokens itself p (first v) X' true false = 0.
  Proof.
    intros H. pose proof (power_range p p_range R) as [P0 P1].
    assert (V : 1 / 2 <= p ^ R -> unit_range (1 / (2 * p ^ R))).
    { intros G. split; [apply Rlt_le, Rdiv_lt_0_compat; lra|]. apply Rmult_le_reg_r with (2 * p ^ R); [lra|].
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
    destruct (all_edited (fun _ _ : bool => False) true false R 0) as (D & I & S).
    destruct k; [destruct H as [H|H]; [discriminate|]|destruct H as [H|H]; [discriminate|]
                |destruct H as [H|H]; [discriminate|]|].
    - exists (1 / (2 * p ^ R)), (repeat true R), (repeat false R). rewrite !repeat_lead. cbn.
      split; [now apply V|]. split; [exists 0%nat, 0%nat, R; split; [exact S|lia]|]. split; field; lra.
    - exists (1 / (2 * p ^ R)), (repeat true R), (repeat false R). rewrite !repeat_lead. cbn.
      split; [now apply V|]. split; [exists 0%nat, 0%nat, R; split; [exact S|lia]|]. split; field; lra.
    - exists (1 / (2 * p ^ R)), (repeat true 0), (repeat false R). rewrite !repeat_lead. cbn.
      split; [now apply V|]. split; [exists R, 0%nat, 0%nat; split; [exact I|lia]|]. split; field; lra.
    - exists (1 / 2), (repeat true R), (repeat true 0). rewrite !repeat_lead. cbn.
      split; [unfold unit_range; lra|]. split; [exists 0%nat, R, 0%nat; split; [exact D|lia]|]. split; field.
  Qed.

  (* Beside s synonyms, of overlap 0, too. *)
  Theorem edits_synonyms_sharp R s : 1 / 2 <= p ^ (s + R) ->
    let synonym := fun x x' => x = true /\ x' = false in
    let sorted := repeat (p + (1 - p) * overlap tokens (itself true) (itself false)) (s + R) in
    let X := repeat true (s + R) in let X' := repeat false (s + R) in
    exists v, unit_range v /\ within synonym Any R s X X' /\
      (1 + lead tokens itself p (first v) X true false) / 2 = threshold p Any R (shift_bound sorted s) /\
      lead tokens itself p (first v) X' true false = 0.
  Proof.
    intros H synonym sorted X X'. pose proof (power_range p p_range (s + R)) as [P0 P1].
    exists (1 / (2 * p ^ (s + R))). unfold X, X'. rewrite !repeat_lead. split; [split|].
    - apply Rlt_le, Rdiv_lt_0_compat; lra.
    - apply Rmult_le_reg_r with (2 * p ^ (s + R)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
    - split; [exists 0%nat, 0%nat, R; split; [now apply synonyms_edited|lia]|]. split; [|field; lra].
      assert (Q : product (firstn s sorted) = p ^ s).
      { unfold sorted. rewrite itself_overlap. cbn [itself Bool.eqb]. rewrite Rmult_0_r, Rplus_0_r.
        clear. induction s as [|s IH]; cbn [Nat.add repeat firstn product pow]; [reflexivity|now rewrite IH]. }
      unfold shift_bound. rewrite Q. cbn [threshold]. rewrite pow_add in *.
      pose proof (power_range p p_range s). pose proof (power_range p p_range R). field. lra.
  Qed.
End Sharp.

(* With p = 9/10 and the model that answers `true` when it reads nothing: a text of one token is certified against one
   edit of any kind, and where that token is replaced the lead falls from 1 to just what the theorem allows. *)
Example one_edit X' : within (fun _ _ => False) Any 1 0 [true] X' ->
  g_deleting tokens itself (9 / 10) (first 1) X' true > g_deleting tokens itself (9 / 10) (first 1) X' false.
Proof.
  intros H. destruct (first_votes 1 ltac:(unfold unit_range; lra)) as (V0 & V1 & V2).
  apply (edits_certificate tokens itself (9 / 10) itself_kernel ltac:(lra) (fun _ _ => False) (fun _ => 1))
    with (k := Any) (R := 1%nat) (s := 0%nat) (X := [true]) (sorted := [1]) (q := 0); auto; try tauto.
  - intros _; unfold unit_range; lra.
  - repeat constructor.
  - unfold shift_bound; cbn; lra.
  - change [true] with (repeat true 1). rewrite repeat_lead. cbn. lra.
Qed.

Example one_edit_bound :
  lead tokens itself (9 / 10) (first 1) [true] true false = 1 /\
  lead tokens itself (9 / 10) (first 1) [false] true false = 4 / 5 /\
  (9 / 10) ^ 1 / (9 / 10) ^ 1 * (1 - 1 + (9 / 10) ^ 1 - 2 * (9 / 10) ^ 1 * 0) - 1 + (9 / 10) ^ 1 = 4 / 5.
Proof.
  change [true] with (repeat true 1). change [false] with (repeat false 1). rewrite !repeat_lead. cbn.
  repeat split; field.
Qed.

(* Two edits are more than certified: 3/2 - (9/10)^2 < 1, but at p = 7/10 nothing is. *)
Example two_edits : threshold (9 / 10) Any 2 0 = 69 / 100 /\ threshold (7 / 10) Any 2 0 > 1.
Proof. cbn. split; lra. Qed.

(* Both texts must be drawn with the same p. At 9/10 for one token and 1/10 for two, an insertion turns a lead of 1,
   more than enough at 9/10, into one of -4/5. *)
Example rate_must_agree :
  let rate := fun L => if Nat.eqb L 1 then 9 / 10 else 1 / 10 in
  let g_at X c := g_rate tokens itself rate (first 1) X c in
  within (fun _ _ => False) Insert 1 0 [true] [false; true] /\
  (1 + (g_at [true] true - g_at [true] false)) / 2 > threshold (rate 1%nat) Insert 1 0 /\
  g_at [false; true] true - g_at [false; true] false = - (4 / 5).
Proof.
  cbn zeta. split; [|split].
  - exists 1%nat, 0%nat, 0%nat. split; [|lia]. apply edited_insert, edited_keep, edited_end.
  - unfold g_rate, g_deleting. cbn [length Nat.eqb]. rewrite !mean_deleting_cons. cbn. lra.
  - unfold g_rate, g_deleting. cbn [length Nat.eqb]. rewrite !mean_deleting_cons. cbn [sum tokens].
    rewrite !mean_deleting_cons. cbn. lra.
Qed.

(* Kernels that share one half: the overlap of a token that is deleted with probability 4/5 is 9/10. *)
Example half_shared :
  let k := fun a : bool => if a then 3 / 4 else 1 / 4 in let k' := fun a : bool => if a then 1 / 4 else 3 / 4 in
  is_kernel tokens k /\ is_kernel tokens k' /\ overlap tokens k k' = 1 / 2 /\
  overlap (outcomes tokens) (deleting (4 / 5) k) (deleting (4 / 5) k') = 9 / 10.
Proof.
  cbn zeta. assert (O : overlap tokens (fun a : bool => if a then 3 / 4 else 1 / 4)
                          (fun a : bool => if a then 1 / 4 else 3 / 4) = 1 / 2).
  { unfold overlap, common. cbn. rewrite (Rmin_right (3 / 4)), (Rmin_left (1 / 4)) by lra. field. }
  repeat split; try (intros []; lra); try (cbn; field); [exact O|].
  rewrite deletion_overlap by lra. rewrite O. field.
Qed.
