(* Smoothing over finite independent kernels, and the certificate that rests on it.

   A text is a list of words, one per slot. Every word x has a kernel: weights over substitutes from a
   finite list, nonnegative, of sum 1. A draw Z of a text takes one substitute per slot, independently. For a
   function h of the draw, `expect` is its mean. With h the indicator of "the model answers c", that is
   g(X,c). Nothing is assumed of the model but that h lies in [0,1]; a model that answers at random, with a
   law that depends on the draw alone, is such an h too. *)
From Coq Require Import Reals List Permutation Sorted Lra Lia.
Import ListNotations.
Local Open Scope R_scope.

(* ------------------------------------------------------------------ sums and products *)

Fixpoint sum {A} (dom : list A) (f : A -> R) : R :=
  match dom with
  | [] => 0
  | a :: rest => f a + sum rest f
  end.

Fixpoint product (l : list R) : R :=
  match l with
  | [] => 1
  | x :: rest => x * product rest
  end.

Lemma Rabs_le_both x y : Rabs x <= y -> - y <= x <= y.
Proof. unfold Rabs; destruct (Rcase_abs x); lra. Qed.

Definition unit_range (x : R) := 0 <= x <= 1.

Lemma sum_le {A} (dom : list A) f g :
  (forall a, In a dom -> f a <= g a) -> sum dom f <= sum dom g.
Proof.
  induction dom as [|a l IH]; cbn; intros H; [lra|].
  assert (f a <= g a) by (apply H; now left).
  assert (sum l f <= sum l g) by (apply IH; intros; apply H; now right). lra.
Qed.

Lemma sum_ext {A} (dom : list A) f g :
  (forall a, In a dom -> f a = g a) -> sum dom f = sum dom g.
Proof.
  intros H. apply Rle_antisym; apply sum_le; intros a Ha; rewrite (H a Ha); lra.
Qed.

Lemma sum_scale {A} (dom : list A) f c : sum dom (fun a => f a * c) = sum dom f * c.
Proof. induction dom as [|a l IH]; cbn; [ring|]. rewrite IH; ring. Qed.

Lemma sum_plus {A} (dom : list A) f g : sum dom (fun a => f a + g a) = sum dom f + sum dom g.
Proof. induction dom as [|a l IH]; cbn; [ring|]. rewrite IH; ring. Qed.

Lemma sum_zero {A} (dom : list A) : sum dom (fun _ => 0) = 0.
Proof. induction dom as [|a l IH]; cbn; [ring|]. rewrite IH; ring. Qed.

Lemma sum_nonneg {A} (dom : list A) f : (forall a, In a dom -> 0 <= f a) -> 0 <= sum dom f.
Proof. intros H. rewrite <- (sum_zero dom). now apply sum_le. Qed.

Lemma sum_app {A} (l m : list A) f : sum (l ++ m) f = sum l f + sum m f.
Proof. induction l as [|a l IH]; cbn; [ring|]. rewrite IH; ring. Qed.

Lemma sum_map {A B} (t : A -> B) (l : list A) f : sum (map t l) f = sum l (fun a => f (t a)).
Proof. induction l as [|a l IH]; cbn; [ring|]. rewrite IH; ring. Qed.

Lemma product_app l m : product (l ++ m) = product l * product m.
Proof. induction l as [|a l IH]; cbn; [ring|]. rewrite IH; ring. Qed.

Lemma product_unit l : Forall unit_range l -> unit_range (product l).
Proof.
  unfold unit_range. induction 1 as [|x l [H0 H1] _ [IH0 IH1]]; cbn; [lra|]. split.
  - now apply Rmult_le_pos.
  - replace 1 with (1 * 1) by ring. now apply Rmult_le_compat.
Qed.

Lemma product_perm l m : Permutation l m -> product l = product m.
Proof. induction 1; cbn; try rewrite IHPermutation; try ring. congruence. Qed.

(* -------------------------------------------------------------------------- the mean *)

Section Draws.
  Context {A : Type}.
  Variable dom : list A. (* all substitutes *)

  Definition is_kernel (k : A -> R) := (forall a, 0 <= k a) /\ sum dom k = 1.

  (* The mean of h over draws that take slot i from the i-th kernel. Also for weights of any sum. *)
  Fixpoint expect (ks : list (A -> R)) (h : list A -> R) : R :=
    match ks with
    | [] => h []
    | k :: rest => sum dom (fun a => k a * expect rest (fun z => h (a :: z)))
    end.

  (* That is the sum over all draws of the product of the weights, written out. *)
  Fixpoint draws (n : nat) : list (list A) :=
    match n with
    | O => [[]]
    | S m => flat_map (fun a => map (cons a) (draws m)) dom
    end.

  Fixpoint weight (ks : list (A -> R)) (z : list A) : R :=
    match ks, z with
    | k :: rest, a :: z' => k a * weight rest z'
    | _, _ => 1
    end.

  Lemma sum_flat_map {B} (l : list A) (t : A -> list B) f :
    sum (flat_map t l) f = sum l (fun a => sum (t a) f).
  Proof. induction l as [|a l IH]; cbn; [reflexivity|]. rewrite sum_app, IH. reflexivity. Qed.

  Theorem expect_is_sum ks : forall h,
    expect ks h = sum (draws (length ks)) (fun z => weight ks z * h z).
  Proof.
    induction ks as [|k ks IH]; intros h; cbn [expect draws length weight].
    - cbn. ring.
    - rewrite sum_flat_map. apply sum_ext; intros a _. rewrite sum_map, IH.
      rewrite Rmult_comm, <- sum_scale. apply sum_ext; intros z _. ring.
  Qed.

  Lemma expect_ext ks : forall h h', (forall z, h z = h' z) -> expect ks h = expect ks h'.
  Proof.
    induction ks as [|k ks IH]; cbn; intros h h' H; [apply H|].
    apply sum_ext; intros a _. f_equal. now apply IH.
  Qed.

  Lemma expect_plus ks : forall h h', expect ks (fun z => h z + h' z) = expect ks h + expect ks h'.
  Proof.
    induction ks as [|k ks IH]; cbn; intros h h'; [ring|].
    rewrite <- sum_plus. apply sum_ext; intros a _. rewrite IH; ring.
  Qed.

  Lemma expect_scale ks : forall c h, expect ks (fun z => h z * c) = expect ks h * c.
  Proof.
    induction ks as [|k ks IH]; cbn; intros c h; [ring|].
    rewrite <- sum_scale. apply sum_ext; intros a _. rewrite IH; ring.
  Qed.

  Lemma expect_minus ks h h' : expect ks (fun z => h z - h' z) = expect ks h - expect ks h'.
  Proof.
    rewrite (expect_ext ks _ (fun z => h z + h' z * -1)) by (intros; ring).
    rewrite expect_plus, expect_scale; ring.
  Qed.

  Lemma expect_one ks : expect ks (fun _ => 1) = product (map (sum dom) ks).
  Proof.
    induction ks as [|k ks IH]; cbn; [reflexivity|]. rewrite IH. apply sum_scale.
  Qed.

  Lemma expect_one_kernels ks : Forall is_kernel ks -> expect ks (fun _ => 1) = 1.
  Proof.
    intros H. rewrite expect_one. induction H as [|k ks [_ Hk] _ IH]; cbn; [reflexivity|].
    rewrite IH, Hk; ring.
  Qed.

  Definition nonneg (k : A -> R) := forall a, 0 <= k a.

  Lemma expect_nonneg ks : Forall nonneg ks -> forall h, (forall z, 0 <= h z) -> 0 <= expect ks h.
  Proof.
    induction 1 as [|k ks Hk _ IH]; cbn; intros h Hh; [apply Hh|].
    apply sum_nonneg; intros a _. apply Rmult_le_pos; [apply Hk|]. apply IH; intros; apply Hh.
  Qed.

  Lemma expect_le ks h h' :
    Forall nonneg ks -> (forall z, h z <= h' z) -> expect ks h <= expect ks h'.
  Proof.
    intros Hk H. assert (0 <= expect ks (fun z => h' z - h z)).
    { apply expect_nonneg; [assumption|]. intros z; specialize (H z); lra. }
    rewrite expect_minus in H0. lra.
  Qed.

  Lemma kernels_nonneg ks : Forall is_kernel ks -> Forall nonneg ks.
  Proof. apply Forall_impl. now intros k [H _]. Qed.

  Lemma expect_unit ks h : Forall is_kernel ks -> (forall z, unit_range (h z)) -> unit_range (expect ks h).
  Proof.
    intros Hk H. split.
    - apply expect_nonneg; [now apply kernels_nonneg|]. apply H.
    - rewrite <- (expect_one_kernels ks Hk). apply expect_le; [now apply kernels_nonneg|]. apply H.
  Qed.

  (* Larger weights, larger means of nonnegative functions. *)
  Lemma expect_mono_kernels ms ks :
    Forall2 (fun m k => forall a, 0 <= m a <= k a) ms ks ->
    forall h, (forall z, 0 <= h z) -> expect ms h <= expect ks h.
  Proof.
    induction 1 as [|m k ms ks Hmk Hrest IH]; cbn; intros h Hh; [lra|].
    apply sum_le; intros a _. destruct (Hmk a). apply Rmult_le_compat; auto.
    apply expect_nonneg; [|intros; apply Hh].
    clear -Hrest. induction Hrest as [|m k ms ks H _ IH]; constructor; auto. intros a; apply H.
  Qed.

  (* ------------------------------------------------------------------- the overlap bound *)

  Definition common (k k' : A -> R) : A -> R := fun a => Rmin (k a) (k' a).
  Definition overlap (k k' : A -> R) : R := sum dom (common k k').

  Fixpoint commons (ks ks' : list (A -> R)) : list (A -> R) :=
    match ks, ks' with
    | k :: l, k' :: l' => common k k' :: commons l l'
    | _, _ => []
    end.

  Fixpoint overlaps (ks ks' : list (A -> R)) : list R :=
    match ks, ks' with
    | k :: l, k' :: l' => overlap k k' :: overlaps l l'
    | _, _ => []
    end.

  Lemma overlap_unit k k' : is_kernel k -> is_kernel k' -> unit_range (overlap k k').
  Proof.
    intros [H S] [H' _]. unfold overlap, common. split.
    - apply sum_nonneg; intros a _. apply Rmin_glb; auto.
    - rewrite <- S. apply sum_le; intros a _. apply Rmin_l.
  Qed.

  Lemma overlap_self k : is_kernel k -> overlap k k = 1.
  Proof.
    intros [_ S]. rewrite <- S. apply sum_ext; intros a _. unfold common. apply Rmin_left; lra.
  Qed.

  Lemma expect_commons_one ks : forall ks', expect (commons ks ks') (fun _ => 1) = product (overlaps ks ks').
  Proof.
    induction ks as [|k ks IH]; intros [|k' ks']; cbn; try reflexivity.
    rewrite IH. apply sum_scale.
  Qed.

  Lemma shift_one_way ks ks' h :
    Forall2 (fun k k' => is_kernel k /\ is_kernel k') ks ks' -> (forall z, unit_range (h z)) ->
    expect ks h - expect ks' h <= 1 - product (overlaps ks ks').
  Proof.
    intros H Hh.
    assert (Hks : Forall is_kernel ks) by (induction H as [|? ? ? ? []]; constructor; auto).
    assert (L : Forall2 (fun m k => forall a, 0 <= m a <= k a) (commons ks ks') ks).
    { induction H as [|k k' ks ks' [[P _] [P' _]] _ IH]; cbn; constructor.
      - intros a; unfold common; split; [apply Rmin_glb; auto|apply Rmin_l].
      - inversion Hks; auto. }
    assert (L' : Forall2 (fun m k => forall a, 0 <= m a <= k a) (commons ks ks') ks').
    { clear L Hks. induction H as [|k k' ks ks' [[P _] [P' _]] _ IH]; cbn; constructor; auto.
      intros a; unfold common; split; [apply Rmin_glb; auto|apply Rmin_r]. }
    assert (B : expect (commons ks ks') (fun z => 1 - h z) <= expect ks (fun z => 1 - h z)).
    { apply expect_mono_kernels; auto. intros z; destruct (Hh z); lra. }
    assert (B' : expect (commons ks ks') h <= expect ks' h).
    { apply expect_mono_kernels; auto. intros z; apply Hh. }
    rewrite !(expect_minus _ (fun _ => 1)), expect_commons_one, (expect_one_kernels ks Hks) in B. lra.
  Qed.

  Lemma overlaps_sym ks : forall ks', overlaps ks ks' = overlaps ks' ks.
  Proof.
    induction ks as [|k ks IH]; intros [|k' ks']; cbn; try reflexivity.
    f_equal; [|apply IH]. apply sum_ext; intros a _; apply Rmin_comm.
  Qed.

  (* (a) For independent kernels the mean of a function into [0,1] moves by at most 1 - prod s_i. *)
  Theorem smoothing_shift ks ks' h :
    Forall2 (fun k k' => is_kernel k /\ is_kernel k') ks ks' -> (forall z, unit_range (h z)) ->
    Rabs (expect ks' h - expect ks h) <= 1 - product (overlaps ks ks').
  Proof.
    intros H Hh. apply Rabs_le. split.
    - pose proof (shift_one_way ks ks' h H Hh). lra.
    - rewrite overlaps_sym. apply shift_one_way; auto.
      clear -H. induction H as [|k k' ks ks' []]; constructor; auto.
  Qed.

  (* With one slot that is sharp: some model moves by just as much. *)
  Lemma shift_sharp k k' : is_kernel k -> is_kernel k' ->
    exists h, (forall z, unit_range (h z)) /\ expect [k] h - expect [k'] h = 1 - overlap k k'.
  Proof.
    intros [_ S] [_ _].
    exists (fun z => match z with a :: _ => if Rle_dec (k a) (k' a) then 0 else 1 | [] => 0 end). split.
    - intros [|a z]; unfold unit_range; [lra|]. destruct (Rle_dec (k a) (k' a)); lra.
    - cbn. apply Rplus_eq_reg_l with (- sum dom k). rewrite S at 2. unfold overlap. clear S.
      induction dom as [|a l IH]; cbn; [ring|]. unfold common, Rmin in *.
      destruct (Rle_dec (k a) (k' a)); lra.
  Qed.

  (* Slots that the model does not see leave the product: if, whatever is drawn in the first slots, h ignores
     everything behind them, its mean is that of the first slots alone. *)
  Definition possible (ks : list (A -> R)) (z : list A) := Forall2 (fun k a => k a <> 0) ks z.

  Theorem unseen_slots seen unseen h rest :
    Forall is_kernel unseen ->
    (forall z w, possible seen z -> h (z ++ w) = h (z ++ rest)) ->
    expect (seen ++ unseen) h = expect seen (fun z => h (z ++ rest)).
  Proof.
    intros Hk. revert h. induction seen as [|k seen IH]; cbn; intros h H.
    - rewrite (expect_ext unseen h (fun _ => 1 * h rest)).
      + rewrite expect_scale, expect_one_kernels by assumption. ring.
      + intros z. pose proof (H [] z) as Hz. cbn in Hz. rewrite Hz by constructor. ring.
    - apply sum_ext; intros a _. destruct (Req_dec (k a) 0) as [->|Ha]; [ring|]. f_equal. apply IH.
      intros z w Hz. apply (H (a :: z) w). now constructor.
  Qed.
End Draws.

(* -------------------------------------------------------------- the R smallest overlaps *)

Lemma firstn_unit l : forall n, Forall unit_range l -> Forall unit_range (firstn n l).
Proof.
  induction l as [|a l IH]; intros [|n] H; cbn; try constructor; inversion_clear H; auto.
Qed.

(* In a rising list of numbers from [0,1], no R members (or fewer) have a smaller product than the first R. *)
Lemma smallest_product l : forall R chosen rest,
  StronglySorted Rle l -> Forall unit_range l ->
  Permutation (chosen ++ rest) l -> (length chosen <= R)%nat ->
  product (firstn R l) <= product chosen.
Proof.
  induction l as [|a l IH]; intros R chosen rest Hs Hu Hp Hr.
  - apply Permutation_sym, Permutation_nil in Hp. apply app_eq_nil in Hp as [-> _].
    rewrite firstn_nil; lra.
  - inversion_clear Hs as [|? ? Hs' Ha]. inversion_clear Hu as [|? ? Hu0 Hu'].
    destruct chosen as [|b chosen].
    { change (product []) with 1. apply product_unit, firstn_unit. now constructor. }
    destruct R as [|R]; [cbn in Hr; lia|]. cbn [firstn].
    assert (Hrest : forall chosen' rest', Permutation (chosen' ++ rest') l -> (length chosen' <= R)%nat ->
                    product (firstn R l) <= product chosen') by (intros; eapply IH; eauto).
    assert (In a (b :: chosen) \/ In a rest) as [Hin|Hin].
    { apply in_app_or. apply (Permutation_in (l := a :: l)); [now apply Permutation_sym|now left]. }
    + apply in_split in Hin as (u & v & Huv). rewrite Huv in *.
      assert (Hp' : Permutation ((u ++ v) ++ rest) l).
      { apply Permutation_cons_inv with a. rewrite <- Hp, <- !app_assoc. cbn.
        apply Permutation_middle. }
      assert (Hl : (length (u ++ v) <= R)%nat).
      { rewrite app_length in Hr |- *. cbn in Hr. lia. }
      specialize (Hrest _ _ Hp' Hl).
      replace (product (u ++ a :: v)) with (a * product (u ++ v)) by (rewrite !product_app; cbn; ring).
      cbn. apply Rmult_le_compat_l; [apply Hu0|exact Hrest].
    + apply in_split in Hin as (u & v & ->).
      assert (Hp' : Permutation (b :: chosen ++ (u ++ v)) l).
      { apply Permutation_cons_inv with a. rewrite <- Hp. cbn.
        rewrite perm_swap. apply perm_skip. rewrite !app_assoc. apply Permutation_middle. }
      assert (Hb : a <= b).
      { rewrite Forall_forall in Ha. apply Ha.
        apply (Permutation_in (l := b :: chosen ++ u ++ v)); auto. now left. }
      assert (Hc : product (firstn R l) <= product chosen).
      { apply Hrest with (rest' := b :: u ++ v); [|cbn in Hr; lia].
        rewrite <- Hp'. apply Permutation_sym, Permutation_middle. }
      cbn. apply Rmult_le_compat; auto; [apply Hu0|].
      now apply (product_unit (firstn R l)), firstn_unit.
Qed.

Section Radius.
  Context {A W : Type}.
  Variable dom : list A.             (* substitutes *)
  Variable kernel : W -> A -> R.     (* of every word *)
  Variable synonym : W -> W -> Prop. (* what the attacker may put for a word *)
  Variable least : W -> R.           (* s_x, or less: 1 for words without synonyms *)

  Hypothesis kernels : forall x, is_kernel dom (kernel x).
  Hypothesis least_unit : forall x, unit_range (least x).
  Hypothesis least_below : forall x x', synonym x x' -> least x <= overlap dom (kernel x) (kernel x').

  (* X' differs from X in at most R slots, each a synonym of what it replaces. *)
  Inductive reachable : nat -> list W -> list W -> Prop :=
  | reach_end R : reachable R [] []
  | reach_keep R x X X' : reachable R X X' -> reachable R (x :: X) (x :: X')
  | reach_change R x x' X X' : synonym x x' -> reachable R X X' -> reachable (S R) (x :: X) (x' :: X').

  Definition mean (X : list W) (h : list A -> R) := expect dom (map kernel X) h.

  Lemma changed_slots R X X' : reachable R X X' ->
    exists chosen rest, Permutation (chosen ++ rest) (map least X) /\ (length chosen <= R)%nat /\
      product chosen <= product (overlaps dom (map kernel X) (map kernel X')).
  Proof.
    induction 1 as [R|R x X X' _ (chosen & rest & Hp & Hl & Hle)|R x x' X X' Hs _ (chosen & rest & Hp & Hl & Hle)].
    - exists [], []. cbn. repeat split; [constructor|lia|lra].
    - exists chosen, (least x :: rest). cbn. repeat split; [|assumption|].
      + rewrite <- Hp. apply Permutation_sym, Permutation_middle.
      + rewrite overlap_self by apply kernels. lra.
    - exists (least x :: chosen), rest. cbn. repeat split; [now apply perm_skip|lia|].
      apply Rmult_le_compat; auto; [apply least_unit|].
      assert (Forall unit_range chosen).
      { apply Forall_forall; intros y Hy. assert (Hin : In y (map least X)).
        { apply (Permutation_in _ Hp), in_or_app; now left. }
        apply in_map_iff in Hin as (w & <- & _). apply least_unit. }
      now apply (product_unit chosen).
  Qed.

  (* What the program computes: overlaps sorted, the first R multiplied. *)
  Definition shift_bound (sorted : list R) (R : nat) := 1 - product (firstn R sorted).

  (* (a), radius form: whatever the attacker does with R slots, g moves by at most q_X(R). *)
  Theorem smoothing_radius R X X' sorted h :
    reachable R X X' -> Permutation (map least X) sorted -> StronglySorted Rle sorted ->
    (forall z, unit_range (h z)) ->
    Rabs (mean X' h - mean X h) <= shift_bound sorted R.
  Proof.
    intros Hr Hp Hs Hh. unfold mean, shift_bound.
    eapply Rle_trans; [apply smoothing_shift; auto|].
    { clear -Hr kernels. induction Hr; cbn; constructor; auto. }
    destruct (changed_slots R X X' Hr) as (chosen & rest & Hc & Hl & Hle).
    assert (product (firstn R sorted) <= product chosen); [|lra].
    apply smallest_product with rest; auto.
    - apply Forall_forall; intros y Hy. apply Permutation_sym in Hp. apply (Permutation_in _ Hp) in Hy.
      apply in_map_iff in Hy as (w & <- & _). apply least_unit.
    - now transitivity (map least X).
  Qed.

  (* --------------------------------------------------------------------- the certificate *)

  Section Votes.
    Context {C : Type}.
    (* vote z c: the share of answer c at the draw z. Answers that are no class may take a share too, so
       the shares of classes sum to at most 1; two of them suffice here. *)
    Variable vote : list A -> C -> R.
    Hypothesis vote_nonneg : forall z c, 0 <= vote z c.
    Hypothesis vote_pair : forall z c d, c <> d -> vote z c + vote z d <= 1.
    Hypothesis vote_one : forall z c, vote z c <= 1.

    Definition g (X : list W) (c : C) := mean X (fun z => vote z c).

    Lemma g_pair X c d : c <> d -> g X c + g X d <= 1.
    Proof.
      intros H. unfold g, mean. rewrite <- expect_plus.
      assert (K : Forall (is_kernel dom) (map kernel X)).
      { apply Forall_forall; intros k Hk. apply in_map_iff in Hk as (x & <- & _). apply kernels. }
      rewrite <- (expect_one_kernels dom _ K). apply expect_le.
      - now apply kernels_nonneg with dom.
      - intros z. now apply vote_pair.
    Qed.

    Lemma g_moves R X X' sorted c :
      reachable R X X' -> Permutation (map least X) sorted -> StronglySorted Rle sorted ->
      Rabs (g X' c - g X c) <= shift_bound sorted R.
    Proof.
      intros. unfold g. apply smoothing_radius; auto. intros z; split; [apply vote_nonneg|apply vote_one].
    Qed.

    (* (b) margin form: a lead of more than 2q at X is a lead at every X'. q may be rounded up. *)
    Theorem certificate_margin R X X' sorted q y :
      reachable R X X' -> Permutation (map least X) sorted -> StronglySorted Rle sorted ->
      shift_bound sorted R <= q ->
      (forall c, c <> y -> g X y - g X c > 2 * q) ->
      forall c, c <> y -> g X' y > g X' c.
    Proof.
      intros Hr Hp Hs Hq Hm c Hc. specialize (Hm c Hc).
      pose proof (g_moves R X X' sorted y Hr Hp Hs) as My.
      pose proof (g_moves R X X' sorted c Hr Hp Hs) as Mc.
      apply Rabs_le_both in My, Mc. lra.
    Qed.

    (* (b) half form: more than 1/2 + q at X wins at every X', by more than half of all draws. *)
    Theorem certificate_half R X X' sorted q y :
      reachable R X X' -> Permutation (map least X) sorted -> StronglySorted Rle sorted ->
      shift_bound sorted R <= q ->
      g X y > 1 / 2 + q ->
      g X' y > 1 / 2 /\ forall c, c <> y -> g X' y > g X' c.
    Proof.
      intros Hr Hp Hs Hq Hy.
      pose proof (g_moves R X X' sorted y Hr Hp Hs) as My. apply Rabs_le_both in My.
      assert (g X' y > 1 / 2) by lra. split; [assumption|].
      intros c Hc. pose proof (g_pair X' c y Hc). lra.
    Qed.
  End Votes.

  (* A model that is a function of the text: Some c, or None for an answer that is no class. *)
  Section Function.
    Context {C : Type}.
    Variable same : forall c d : C, {c = d} + {c <> d}.
    Variable f : list A -> option C.

    Definition answers (z : list A) (c : C) : R :=
      match f z with
      | Some d => if same d c then 1 else 0
      | None => 0
      end.

    Lemma answers_votes :
      (forall z c, 0 <= answers z c) /\ (forall z c d, c <> d -> answers z c + answers z d <= 1) /\
      (forall z c, answers z c <= 1).
    Proof.
      unfold answers. repeat split; intros; destruct (f z); try lra;
        repeat destruct same; try lra; congruence.
    Qed.

    Theorem function_certificate_margin R X X' sorted q y :
      reachable R X X' -> Permutation (map least X) sorted -> StronglySorted Rle sorted ->
      shift_bound sorted R <= q ->
      (forall c, c <> y -> g answers X y - g answers X c > 2 * q) ->
      forall c, c <> y -> g answers X' y > g answers X' c.
    Proof. destruct answers_votes as (H0 & H1 & H2). now apply certificate_margin. Qed.
  End Function.
End Radius.

(* s_x as the minimum over a list of synonyms, 1 where there are none. *)
Definition least_overlap {A W} (dom : list A) (kernel : W -> A -> R) (synonyms : W -> list W) (x : W) : R :=
  fold_right (fun x' s => Rmin (overlap dom (kernel x) (kernel x')) s) 1 (synonyms x).

Theorem smoothing_radius_minimum {A W} (dom : list A) (kernel : W -> A -> R) (synonyms : W -> list W) :
  (forall x, is_kernel dom (kernel x)) ->
  forall R X X' sorted h,
  reachable (fun x x' => In x' (synonyms x)) R X X' ->
  Permutation (map (least_overlap dom kernel synonyms) X) sorted -> StronglySorted Rle sorted ->
  (forall z, unit_range (h z)) ->
  Rabs (mean dom kernel X' h - mean dom kernel X h) <= shift_bound sorted R.
Proof.
  intros HK R X X' sorted h. apply smoothing_radius; auto.
  - intros x. unfold least_overlap. induction (synonyms x) as [|x' l [I0 I1]]; cbn; split; try lra.
    + apply Rmin_glb; [now apply overlap_unit|assumption].
    + eapply Rle_trans; [apply Rmin_r|assumption].
  - intros x x'. unfold least_overlap. induction (synonyms x) as [|a l IH]; cbn; [tauto|].
    intros [->|H]; [apply Rmin_l|]. eapply Rle_trans; [apply Rmin_r|auto].
Qed.

(* Kernels of the lexicon have whole weights: their overlap is one fraction of whole numbers, and neither its
   parts nor the terms of the sum exceed the product of the totals. *)
Fixpoint whole_sum {A} (dom : list A) (f : A -> Z) : Z :=
  match dom with
  | [] => 0%Z
  | a :: rest => (f a + whole_sum rest f)%Z
  end.

Definition whole_kernel {A} (w : A -> Z) (total : Z) (a : A) : R := IZR (w a) / IZR total.
Definition whole_overlap {A} (dom : list A) (w w' : A -> Z) (total total' : Z) : Z :=
  whole_sum dom (fun a => Z.min (w a * total') (w' a * total)).

Lemma whole_sum_real {A} (dom : list A) f : IZR (whole_sum dom f) = sum dom (fun a => IZR (f a)).
Proof. induction dom as [|a l IH]; cbn; [reflexivity|]. rewrite plus_IZR, IH. reflexivity. Qed.

Lemma whole_is_kernel {A} (dom : list A) w total :
  (forall a, 0 <= w a)%Z -> (0 < total)%Z -> whole_sum dom w = total -> is_kernel dom (whole_kernel w total).
Proof.
  intros Hw Ht Hs. apply IZR_lt in Ht. split.
  - intros a. apply Rmult_le_pos; [now apply IZR_le|]. left. now apply Rinv_0_lt_compat.
  - unfold whole_kernel, Rdiv. rewrite sum_scale, <- whole_sum_real, Hs. apply Rinv_r. lra.
Qed.

Theorem overlap_whole {A} (dom : list A) w w' total total' : (0 < total)%Z -> (0 < total')%Z ->
  overlap dom (whole_kernel w total) (whole_kernel w' total') =
  IZR (whole_overlap dom w w' total total') / IZR (total * total').
Proof.
  intros Ht Ht'. apply IZR_lt in Ht, Ht'. unfold overlap, whole_overlap, Rdiv.
  rewrite whole_sum_real, <- sum_scale. apply sum_ext; intros a _. unfold common, whole_kernel, Rdiv.
  assert (P : 0 < IZR total * IZR total') by now apply Rmult_lt_0_compat. rewrite mult_IZR.
  assert (E : IZR (w a) * / IZR total = IZR (w a * total') * / (IZR total * IZR total')).
  { rewrite mult_IZR. field. lra. }
  assert (E' : IZR (w' a) * / IZR total' = IZR (w' a * total) * / (IZR total * IZR total')).
  { rewrite mult_IZR. field. lra. }
  rewrite E, E'. assert (I : 0 < / (IZR total * IZR total')) by now apply Rinv_0_lt_compat.
  destruct (Z.min_spec (w a * total') (w' a * total)) as [[L ->]|[L ->]].
  - apply Rmin_left, Rmult_le_compat_r; [lra|]. apply IZR_le. lia.
  - apply Rmin_right, Rmult_le_compat_r; [lra|]. now apply IZR_le.
Qed.

Theorem overlap_whole_fits {A} (dom : list A) w w' total total' :
  (forall a, 0 <= w a)%Z -> (forall a, 0 <= w' a)%Z -> whole_sum dom w = total -> whole_sum dom w' = total' ->
  (0 < total < 2 ^ 32)%Z -> (0 < total' < 2 ^ 32)%Z ->
  (0 <= whole_overlap dom w w' total total' <= total * total')%Z /\ (total * total' < 2 ^ 64)%Z /\
  forall a, In a dom -> (0 <= w a * total' < 2 ^ 64)%Z /\ (0 <= w' a * total < 2 ^ 64)%Z.
Proof.
  intros Hw Hw' Hs Hs' Ht Ht'.
  assert (Part : forall (v : A -> Z) l, (forall a, 0 <= v a)%Z ->
            (0 <= whole_sum l v)%Z /\ forall a, In a l -> (v a <= whole_sum l v)%Z).
  { intros v l Hv. induction l as [|b l [I1 I2]]; cbn; [split; [lia|tauto]|]. pose proof (Hv b). split; [lia|].
    intros a [->|Ha]; [lia|]. specialize (I2 a Ha). lia. }
  assert (Lt : (total * total' < 2 ^ 64)%Z) by nia. split; [|split; [exact Lt|]].
  - assert (B : forall l, (0 <= whole_overlap l w w' total total' <= whole_sum l w * total')%Z).
    { induction l as [|a l IH]; cbn; [lia|]. unfold whole_overlap in *. cbn. pose proof (Hw a). pose proof (Hw' a).
      assert (0 <= w a * total')%Z by nia. assert (0 <= w' a * total)%Z by nia. lia. }
    specialize (B dom). rewrite Hs in B. exact B.
  - intros a Ha. destruct (Part w dom Hw) as [_ P]. destruct (Part w' dom Hw') as [_ P'].
    specialize (P a Ha). specialize (P' a Ha). specialize (Hw a). specialize (Hw' a). nia.
Qed.

(* Enumeration: with whole weights that sum to w, the condition on g is one on whole numbers. *)
Theorem enumerated_margin (own rival w : Z) (q : R) :
  (0 < w)%Z -> 0 <= q -> (own - rival > Int_part (2 * q * IZR w))%Z ->
  IZR own / IZR w - IZR rival / IZR w > 2 * q.
Proof.
  intros Hw Hq H. apply IZR_lt in Hw. set (t := 2 * q * IZR w) in *.
  assert (T : t < IZR (own - rival)).
  { destruct (base_Int_part t) as [_ B].
    assert (IZR (Int_part t + 1) <= IZR (own - rival)) by (apply IZR_le; lia).
    rewrite plus_IZR in H0. lra. }
  rewrite minus_IZR in T. apply Rmult_lt_reg_r with (IZR w); auto.
  replace ((IZR own / IZR w - IZR rival / IZR w) * IZR w) with (IZR own - IZR rival) by (field; lra).
  exact T.
Qed.
