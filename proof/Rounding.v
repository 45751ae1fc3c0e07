(* Arithmetic that rounds one way: the operations of base/number.c give what they promise, and q computed
   with them is never too small.

   Model. A double is a real number of the form m 2^e with |m| < 2^53 and e >= -1074 (Flocq's FLT format, with
   gradual underflow). An operation is the exact one followed by rounding to the nearest, ties to even; fma
   rounds once; nextafter is Flocq's pred or succ; multiplication by 2^600 is an operation like any other.
   The format has no largest number: that nothing overflows is shown from the ranges of the operands. *)
From Coq Require Import Reals List ZArith Sorted Permutation Lra Lia.
From Flocq Require Import Core.
From Flocq.Prop Require Import Sterbenz Plus_error Mult_error.
From Safer Require Import Smoothing.
Import ListNotations.
Local Open Scope R_scope.

Definition emin := (-1074)%Z.
Definition prec := 53%Z.
#[local] Instance prec_positive : Prec_gt_0 prec := eq_refl.

Definition exponents := FLT_exp emin prec.
Definition double (x : R) : Prop := generic_format radix2 exponents x.
Definition nearest (x : R) : R := round radix2 exponents ZnearestE x.
Definition down (x : R) : R := round radix2 exponents Zfloor x. (* the largest double that is at most x *)
Definition up (x : R) : R := round radix2 exponents Zceil x.    (* the smallest double that is at least x *)
Definition before (x : R) : R := pred radix2 exponents x.       (* nextafter, towards smaller numbers *)
Definition after (x : R) : R := succ radix2 exponents x.        (* nextafter, towards larger numbers *)
Definition fma (x y z : R) : R := nearest (x * y + z).

Notation two e := (bpow radix2 e).

#[local] Instance exponents_valid : Valid_exp exponents := FLT_exp_valid emin prec.
#[local] Instance exponents_monotone : Monotone_exp exponents := FLT_exp_monotone emin prec.
#[local] Instance exponents_no_flush : Exp_not_FTZ exponents.
Proof. apply monotone_exp_not_FTZ; typeclasses eauto. Qed.

Lemma double_0 : double 0.
Proof. apply generic_format_0. Qed.

Lemma double_1 : double 1.
Proof. apply (generic_format_FLT_bpow radix2 emin prec 0). unfold emin; lia. Qed.

Lemma double_half : double (1 / 2).
Proof.
  replace (1 / 2) with (two (-1)) by (cbn; lra). apply generic_format_FLT_bpow; [exact eq_refl|]. unfold emin; lia.
Qed.

Lemma double_nearest x : double (nearest x).
Proof. apply generic_format_round; typeclasses eauto. Qed.

Lemma nearest_double x : double x -> nearest x = x.
Proof. apply round_generic; typeclasses eauto. Qed.

Lemma above_double d x : double d -> d <= x -> d <= nearest x.
Proof. apply round_ge_generic; typeclasses eauto. Qed.

Lemma below_double d x : double d -> x <= d -> nearest x <= d.
Proof. apply round_le_generic; typeclasses eauto. Qed.

Lemma down_le x : down x <= x.
Proof. apply round_DN_pt; typeclasses eauto. Qed.

Lemma up_ge x : x <= up x.
Proof. apply round_UP_pt; typeclasses eauto. Qed.

Lemma down_double x : double (down x).
Proof. apply generic_format_round; typeclasses eauto. Qed.

Lemma up_double x : double (up x).
Proof. apply generic_format_round; typeclasses eauto. Qed.

(* What the sign of the rounding error says. *)
Lemma nearest_low x : nearest x <= x -> nearest x = down x.
Proof.
  intros H. apply Rle_antisym.
  - apply round_DN_pt; [typeclasses eauto|apply double_nearest|exact H].
  - destruct (round_DN_or_UP radix2 exponents ZnearestE x) as [E|E]; unfold nearest, down; rewrite E; [lra|].
    apply Rle_trans with x; [apply down_le|apply up_ge].
Qed.

Lemma nearest_high x : x <= nearest x -> nearest x = up x.
Proof.
  intros H. apply Rle_antisym.
  - destruct (round_DN_or_UP radix2 exponents ZnearestE x) as [E|E]; unfold nearest, up; rewrite E; [|lra].
    apply Rle_trans with x; [apply down_le|apply up_ge].
  - apply round_UP_pt; [typeclasses eauto|apply double_nearest|exact H].
Qed.

Lemma not_double x : nearest x <> x -> ~ double x.
Proof. intros H D. now apply H, nearest_double. Qed.

Lemma before_high x : x < nearest x -> before (nearest x) = down x.
Proof.
  intros H. rewrite nearest_high by lra. apply pred_UP_eq_DN; try typeclasses eauto. apply not_double. lra.
Qed.

Lemma after_low x : nearest x < x -> after (nearest x) = up x.
Proof.
  intros H. rewrite nearest_low by lra. apply succ_DN_eq_UP; try typeclasses eauto. apply not_double. lra.
Qed.

(* --------------------------------------------------------------------------- multiply down *)

(* sf_multiply_down: the sign of the error comes from a fused multiply-add, scaled up by 2^600 so that the
   error of a tiny product does not vanish. *)
Definition multiply_down (a b : R) : R :=
  let product := nearest (a * b) in
  if Rlt_dec (fma (nearest (a * two 600)) b (nearest (- product * two 600))) 0
  then before product else product.

Lemma scaled_double x : double x -> double (x * two 600).
Proof.
  intros H. apply FLT_format_generic in H as [[m e] -> Hm He]; [|exact eq_refl]. cbn in Hm, He.
  apply generic_format_FLT. apply (FLT_spec _ _ _ _ (Float radix2 m (e + 600))); cbn [Fnum Fexp]; [|exact Hm|lia].
  unfold F2R; cbn [Fnum Fexp]. rewrite bpow_plus. ring.
Qed.

Lemma positive_double x : double x -> 0 < x -> two emin <= x.
Proof.
  intros H Hx. apply FLT_format_generic in H as [[m e] -> Hm He]; [|exact eq_refl]. cbn in Hm, He.
  apply Rle_trans with (two e); [now apply bpow_le|]. apply bpow_le_F2R. now apply gt_0_F2R in Hx.
Qed.

Theorem multiply_down_exact a b : double a -> double b -> 0 <= a <= 1 -> 0 <= b <= 1 ->
  multiply_down a b = down (a * b).
Proof.
  intros Da Db Ha Hb. unfold multiply_down, fma. set (p := nearest (a * b)).
  assert (Hab : 0 <= a * b) by (apply Rmult_le_pos; lra).
  assert (Dp : double p) by apply double_nearest.
  rewrite !(nearest_double (_ * two 600)).
  2: { now apply scaled_double, generic_format_opp. }
  2: { now apply scaled_double. }
  replace (a * two 600 * b + - p * two 600) with ((a * b - p) * two 600) by ring.
  assert (T : 0 < two 600) by apply bpow_gt_0.
  destruct (Rle_or_lt p (a * b)) as [H|H].
  - destruct (Rlt_dec _ 0) as [N|N]; [exfalso|now apply nearest_low].
    assert (0 <= nearest ((a * b - p) * two 600)); [|lra].
    apply above_double; [apply double_0|]. apply Rmult_le_pos; lra.
  - destruct (Rlt_dec _ 0) as [N|N]; [now apply before_high|exfalso; apply N; clear N].
    (* The error is at least 2^-1180. *)
    assert (P : two emin <= p) by (apply positive_double; auto; lra).
    assert (Half : p / 2 <= a * b).
    { destruct (round_N_pt radix2 exponents (fun t => negb (Z.even t)) (a * b)) as [_ Near].
      specialize (Near 0 double_0). fold (nearest (a * b)) in Near. fold p in Near.
      rewrite (Rabs_pos_eq (p - a * b)), (Rabs_left1 (0 - a * b)) in Near by lra. lra. }
    assert (Low : two (-1180 + 2 * prec - 1) <= Rabs (a * b)).
    { rewrite Rabs_pos_eq by assumption. replace (-1180 + 2 * prec - 1)%Z with (-1 + emin)%Z by reflexivity.
      rewrite bpow_plus. replace (two (-1)) with (/ 2) by reflexivity. lra. }
    assert (E : two (-1180) <= Rabs (p - a * b)).
    { apply (mult_error_FLT_ge_bpow radix2 emin prec ZnearestE a b (-1180) Da Db Low). fold exponents.
      fold (nearest (a * b)). fold p. lra. }
    rewrite Rabs_pos_eq in E by lra.
    apply Rle_lt_trans with (- two (-580)); [|pose proof (bpow_gt_0 radix2 (-580)); lra].
    apply below_double.
    2: { replace (two (-580)) with (two (-1180) * two 600) by (rewrite <- bpow_plus; reflexivity).
         rewrite Ropp_mult_distr_l. apply Rmult_le_compat_r; lra. }
    apply generic_format_opp, generic_format_FLT_bpow; [exact eq_refl|unfold emin; lia].
Qed.

(* No operand or result on the way exceeds 2^600 in magnitude. *)
Theorem multiply_down_no_overflow a b : double a -> double b -> 0 <= a <= 1 -> 0 <= b <= 1 ->
  let p := nearest (a * b) in
  0 <= p <= 1 /\ 0 <= a * two 600 <= two 600 /\ - two 600 <= - p * two 600 <= 0 /\
  Rabs (fma (a * two 600) b (- p * two 600)) <= two 600.
Proof.
  intros Da Db Ha Hb p.
  assert (Hab : 0 <= a * b <= 1).
  { split; [apply Rmult_le_pos; lra|]. replace 1 with (1 * 1) by ring. apply Rmult_le_compat; lra. }
  assert (Hp : 0 <= p <= 1).
  { split; [apply above_double; [apply double_0|lra]|apply below_double; [apply double_1|lra]]. }
  assert (T : 0 < two 600) by apply bpow_gt_0.
  assert (S : forall x, 0 <= x <= 1 -> 0 <= x * two 600 <= two 600).
  { intros x Hx. split; [apply Rmult_le_pos; lra|]. rewrite <- (Rmult_1_l (two 600)) at 2.
    apply Rmult_le_compat_r; lra. }
  assert (D : double (two 600)) by (apply generic_format_FLT_bpow; [exact eq_refl|unfold emin; lia]).
  destruct (S a Ha) as [A1 A2], (S p Hp) as [P1 P2], (S (a * b) Hab) as [B1 B2]. repeat split; try lra.
  apply Rabs_le. unfold fma. split.
  - apply above_double; [now apply generic_format_opp|lra].
  - apply below_double; [assumption|lra].
Qed.

(* ---------------------------------------------------------------------------- complement up *)

(* sf_complement_up *)
Definition complement_up (x : R) : R :=
  let y := nearest (1 - x) in
  if Rlt_dec 0 (nearest (nearest (1 - y) - x)) then after y else y.

Theorem complement_up_exact x : double x -> 0 <= x <= 1 -> complement_up x = up (1 - x).
Proof.
  intros Dx Hx. unfold complement_up. set (y := nearest (1 - x)).
  assert (Dy : double y) by apply double_nearest.
  destruct (Rle_or_lt (1 - x) y) as [H|H].
  - destruct (Rlt_dec 0 _) as [N|N]; [exfalso|now apply nearest_high].
    assert (nearest (1 - y) <= x) by (apply below_double; auto; lra).
    assert (nearest (nearest (1 - y) - x) <= 0); [|lra].
    apply below_double; [apply double_0|lra].
  - destruct (Rlt_dec 0 _) as [N|N]; [now apply after_low|exfalso; apply N; clear N].
    (* Where 1-x is not a double, x < 1/2 <= y, and 1-y is exact. *)
    assert (X : x < 1 / 2).
    { apply Rnot_le_lt. intros L. assert (double (1 - x)) by (apply (sterbenz radix2 exponents 1 x double_1 Dx); lra).
      unfold y in H. rewrite nearest_double in H by assumption. lra. }
    assert (Y : 1 / 2 <= y <= 1).
    { unfold y. split; [apply above_double; [apply double_half|lra]|apply below_double; [apply double_1|lra]]. }
    assert (D : double (1 - y)) by (apply (sterbenz radix2 exponents 1 y double_1 Dy); lra).
    rewrite (nearest_double (1 - y)) by assumption.
    assert (0 <= nearest (1 - y - x)) by (apply above_double; [apply double_0|lra]).
    assert (nearest (1 - y - x) <> 0); [|lra].
    unfold Rminus at 1. apply round_plus_neq_0; try typeclasses eauto; auto; [now apply generic_format_opp|lra].
Qed.

(* ---------------------------------------------------------------------------- the null 1/2 + q *)

(* sf_null_probability *)
Definition null_probability (q : R) : R :=
  let p := nearest (1 / 2 + q) in
  if Rlt_dec (nearest (p - 1 / 2)) q then after p else p.

Theorem null_probability_exact q : double q -> 0 <= q <= 1 / 2 -> null_probability q = up (1 / 2 + q).
Proof.
  intros Dq Hq. unfold null_probability. set (p := nearest (1 / 2 + q)).
  assert (Dp : double p) by apply double_nearest.
  assert (P : 1 / 2 <= p <= 1).
  { unfold p. split; [apply above_double; [apply double_half|lra]|apply below_double; [apply double_1|lra]]. }
  rewrite (nearest_double (p - 1 / 2)).
  - destruct (Rlt_dec (p - 1 / 2) q) as [N|N]; [apply after_low|apply nearest_high]; fold p; lra.
  - apply (sterbenz radix2 exponents p (1 / 2) Dp double_half). lra.
Qed.

(* A larger q gives 1 or more, which is never certified. *)
Theorem null_probability_large q : 1 / 2 < q -> 1 <= null_probability q.
Proof.
  intros Hq. unfold null_probability.
  assert (1 <= nearest (1 / 2 + q)) by (apply above_double; [apply double_1|lra]).
  destruct (Rlt_dec _ q); [|assumption]. eapply Rle_trans; [eassumption|]. apply succ_ge_id.
Qed.

(* ------------------------------------------------------------------------------- ratio down *)

(* sf_ratio_down on whole numbers n, d from 1 to 2^64 - 1, as it is computed: 63 - clz is Z.log2, >> and / cut,
   the loop runs at most once since the quotient has at most 54 bits (ratio_bits). *)
Definition ratio_shift (n d : Z) : Z := (53 - Z.log2 n + Z.log2 d)%Z.
Definition ratio_n (n d : Z) : Z := if (0 <=? ratio_shift n d)%Z then (n * 2 ^ ratio_shift n d)%Z else n.
Definition ratio_d (n d : Z) : Z := if (0 <=? ratio_shift n d)%Z then d else (d * 2 ^ (- ratio_shift n d))%Z.
Definition ratio_quotient (n d : Z) : Z := (ratio_n n d / ratio_d n d)%Z.

Definition ratio_down (n d : Z) : R :=
  if (n =? 0)%Z then 0
  else let q := ratio_quotient n d in
       if (q <? 2 ^ 53)%Z then IZR q * two (- ratio_shift n d)
       else IZR (q / 2) * two (- (ratio_shift n d - 1)).

Lemma ratio_bounds n d : (0 < n)%Z -> (0 < d)%Z ->
  let r := IZR n / IZR d * two (ratio_shift n d) in
  IZR (ratio_n n d) / IZR (ratio_d n d) = r /\ two 52 < r < two 54.
Proof.
  intros Hn Hd r.
  assert (Nd : 0 < IZR d) by now apply IZR_lt. assert (Nn : 0 < IZR n) by now apply IZR_lt.
  split.
  - unfold r, ratio_n, ratio_d. destruct (Z.leb_spec 0 (ratio_shift n d)) as [S|S].
    + rewrite mult_IZR, (IZR_Zpower radix2) by assumption. field. lra.
    + rewrite mult_IZR, (IZR_Zpower radix2) by lia. rewrite bpow_opp.
      pose proof (bpow_gt_0 radix2 (ratio_shift n d)). field. lra.
  - assert (Ln := Z.log2_spec n Hn). assert (Ld := Z.log2_spec d Hd).
    pose proof (Z.log2_nonneg n) as Zn. pose proof (Z.log2_nonneg d) as Zd.
    destruct Ln as [Ln1 Ln2], Ld as [Ld1 Ld2].
    apply IZR_le in Ln1, Ld1. apply IZR_lt in Ln2, Ld2.
    rewrite !(IZR_Zpower radix2) in Ln1, Ln2, Ld1, Ld2 by lia.
    unfold r, ratio_shift. set (ln := Z.log2 n) in *. set (ld := Z.log2 d) in *.
    assert (B : forall e, 0 < two e) by (intros; apply bpow_gt_0).
    split; apply Rmult_lt_reg_r with (IZR d); auto;
      replace (IZR n / IZR d * two (53 - ln + ld) * IZR d) with (IZR n * two (53 - ln + ld)) by (field; lra).
    + apply Rlt_le_trans with (two 52 * two (Z.succ ld)); [apply Rmult_lt_compat_l; auto|].
      rewrite <- bpow_plus. replace (52 + Z.succ ld)%Z with (ln + (53 - ln + ld))%Z by lia.
      rewrite bpow_plus. apply Rmult_le_compat_r; [left|]; auto.
    + apply Rlt_le_trans with (two (Z.succ ln) * two (53 - ln + ld)); [apply Rmult_lt_compat_r; auto|].
      rewrite <- bpow_plus. replace (Z.succ ln + (53 - ln + ld))%Z with (54 + ld)%Z by lia.
      rewrite bpow_plus. apply Rmult_le_compat_l; [left|]; auto.
Qed.

(* The wide numbers of the program hold 128 bits, the quotient 64. *)
Theorem ratio_bits n d : (0 < n < 2 ^ 64)%Z -> (0 < d < 2 ^ 64)%Z ->
  (0 < ratio_n n d < 2 ^ 128)%Z /\ (0 < ratio_d n d < 2 ^ 128)%Z /\ (2 ^ 52 <= ratio_quotient n d < 2 ^ 54)%Z /\
  (-10 <= ratio_shift n d <= 116)%Z.
Proof.
  intros [Hn Hn64] [Hd Hd64].
  pose proof (Z.log2_nonneg n) as Zn. pose proof (Z.log2_nonneg d) as Zd.
  assert (Ln64 : (Z.log2 n < 64)%Z) by (apply Z.log2_lt_pow2; lia).
  assert (Ld64 : (Z.log2 d < 64)%Z) by (apply Z.log2_lt_pow2; lia).
  destruct (Z.log2_spec n Hn) as [Ln1 Ln2]. destruct (Z.log2_spec d Hd) as [Ld1 Ld2].
  repeat split; try (unfold ratio_shift; lia).
  - unfold ratio_n. destruct (Z.leb_spec 0 (ratio_shift n d)); [|lia]. apply Z.mul_pos_pos; [lia|].
    apply Z.pow_pos_nonneg; lia.
  - unfold ratio_n. destruct (Z.leb_spec 0 (ratio_shift n d)); [|lia].
    apply Z.lt_le_trans with (2 ^ Z.succ (Z.log2 n) * 2 ^ ratio_shift n d)%Z.
    + apply Z.mul_lt_mono_pos_r; [apply Z.pow_pos_nonneg; lia|lia].
    + rewrite <- Z.pow_add_r by lia. apply Z.pow_le_mono_r; unfold ratio_shift; lia.
  - unfold ratio_d. destruct (Z.leb_spec 0 (ratio_shift n d)); [lia|]. apply Z.mul_pos_pos; [lia|].
    apply Z.pow_pos_nonneg; lia.
  - unfold ratio_d. destruct (Z.leb_spec 0 (ratio_shift n d)); [lia|].
    apply Z.lt_le_trans with (2 ^ Z.succ (Z.log2 d) * 2 ^ (- ratio_shift n d))%Z.
    + apply Z.mul_lt_mono_pos_r; [apply Z.pow_pos_nonneg; lia|lia].
    + rewrite <- Z.pow_add_r by lia. apply Z.pow_le_mono_r; unfold ratio_shift in *; lia.
  - destruct (ratio_bounds n d Hn Hd) as [E [B _]]. unfold ratio_quotient.
    assert (Dp : (0 < ratio_d n d)%Z).
    { unfold ratio_d. destruct (Z.leb_spec 0 (ratio_shift n d)); [lia|]. apply Z.mul_pos_pos; [lia|].
      apply Z.pow_pos_nonneg; lia. }
    rewrite <- Zfloor_div by lia. rewrite E. apply Zfloor_lub. rewrite (IZR_Zpower radix2) by lia. lra.
  - destruct (ratio_bounds n d Hn Hd) as [E [_ B]]. unfold ratio_quotient.
    assert (Dp : (0 < ratio_d n d)%Z).
    { unfold ratio_d. destruct (Z.leb_spec 0 (ratio_shift n d)); [lia|]. apply Z.mul_pos_pos; [lia|].
      apply Z.pow_pos_nonneg; lia. }
    rewrite <- Zfloor_div by lia. rewrite E. apply lt_IZR. rewrite (IZR_Zpower radix2) by lia.
    eapply Rle_lt_trans; [apply Zfloor_lb|exact B].
Qed.

(* The largest double at most x > 0, from its first 53 bits. *)
Lemma down_by_bits x s : (-1000 <= s <= 1000)%Z -> two 52 <= x * two s < two 53 ->
  down x = IZR (Zfloor (x * two s)) * two (- s).
Proof.
  intros Hs [L U].
  assert (B : forall e, 0 < two e) by (intros; apply bpow_gt_0).
  assert (M : mag radix2 x = (53 - s)%Z :> Z).
  { apply mag_unique_pos. split; apply Rmult_le_reg_r with (two s) || apply Rmult_lt_reg_r with (two s); auto;
      rewrite <- bpow_plus.
    - replace (53 - s - 1 + s)%Z with 52%Z by lia. exact L.
    - replace (53 - s + s)%Z with 53%Z by lia. exact U. }
  unfold down, round, scaled_mantissa, cexp. rewrite M. unfold exponents, FLT_exp, emin, prec.
  replace (Z.max (53 - s - 53) (-1074)) with (- s)%Z by lia. rewrite Z.opp_involutive. reflexivity.
Qed.

Theorem ratio_down_exact n d : (0 <= n < 2 ^ 64)%Z -> (0 < d < 2 ^ 64)%Z ->
  ratio_down n d = down (IZR n / IZR d).
Proof.
  intros Hn Hd. unfold ratio_down. destruct (Z.eqb_spec n 0) as [->|Z].
  - unfold Rdiv. rewrite Rmult_0_l. unfold down. rewrite round_0; [reflexivity|typeclasses eauto].
  - assert (Hn' : (0 < n)%Z) by lia.
    destruct (ratio_bits n d) as (_ & [Dp _] & [Q1 Q2] & S); [lia|assumption|].
    destruct (ratio_bounds n d) as [E [B1 B2]]; [lia|lia|].
    assert (F : ratio_quotient n d = Zfloor (IZR n / IZR d * two (ratio_shift n d))).
    { unfold ratio_quotient. rewrite <- Zfloor_div by lia. now rewrite E. }
    destruct (Z.ltb_spec (ratio_quotient n d) (2 ^ 53)) as [Q|Q].
    + rewrite (down_by_bits _ (ratio_shift n d)); [now rewrite F|lia|]. split; [lra|].
      apply Rnot_le_lt. intros N. assert (2 ^ 53 <= ratio_quotient n d)%Z; [|lia].
      rewrite F. apply Zfloor_lub. rewrite (IZR_Zpower radix2) by lia. exact N.
    + rewrite (down_by_bits _ (ratio_shift n d - 1)); [|lia|].
      * f_equal. f_equal. rewrite <- Zfloor_div by lia.
        unfold Zminus. rewrite bpow_plus, <- Rmult_assoc, <- E. replace (two (- (1))) with (/ 2) by reflexivity.
        unfold ratio_quotient. rewrite Zfloor_div by lia. rewrite Z.div_div by lia.
        rewrite <- Zfloor_div by lia. f_equal. rewrite mult_IZR.
        assert (0 < IZR (ratio_d n d)) by now apply IZR_lt. field. lra.
      * unfold Zminus. rewrite bpow_plus, <- Rmult_assoc. replace (two (- (1))) with (/ 2) by reflexivity.
        replace (two 54) with (two 53 * 2) in B2 by (cbn; lra). replace (two 52) with (two 53 * / 2) by (cbn; lra).
        assert (two 53 <= IZR n / IZR d * two (ratio_shift n d)).
        { apply IZR_le in Q. rewrite (IZR_Zpower radix2) in Q by lia. eapply Rle_trans; [exact Q|].
          rewrite F. apply Zfloor_lb. }
        lra.
Qed.

(* An overlap as the lexicon computes it is at most the true one. *)
Theorem overlap_below {A} (dom : list A) w w' total total' :
  (forall a, 0 <= w a)%Z -> (forall a, 0 <= w' a)%Z -> whole_sum dom w = total -> whole_sum dom w' = total' ->
  (0 < total < 2 ^ 32)%Z -> (0 < total' < 2 ^ 32)%Z ->
  let s := ratio_down (whole_overlap dom w w' total total') (total * total') in
  double s /\ unit_range s /\ s <= overlap dom (whole_kernel w total) (whole_kernel w' total').
Proof.
  intros Hw Hw' Hs Hs' Ht Ht' s.
  destruct (overlap_whole_fits dom w w' total total' Hw Hw' Hs Hs' Ht Ht') as ([O1 O2] & B & _).
  assert (E : s = down (overlap dom (whole_kernel w total) (whole_kernel w' total'))).
  { unfold s. rewrite ratio_down_exact by nia. rewrite overlap_whole by lia. reflexivity. }
  assert (U : unit_range (overlap dom (whole_kernel w total) (whole_kernel w' total'))).
  { apply overlap_unit; apply whole_is_kernel; auto; lia. }
  rewrite E. split; [apply down_double|]. split; [|apply down_le].
  destruct U as [U0 U1]. split; [apply round_ge_generic; try typeclasses eauto; [apply double_0|exact U0]|].
  eapply Rle_trans; [apply down_le|exact U1].
Qed.

(* ------------------------------------------------------------------------------------- q *)

(* sf_q_at, sf_overlap_products: sorted overlaps, a product that rounds down at every step, 1 minus it up. *)
Definition product_down (l : list R) : R := fold_left multiply_down l 1.
Definition q_at (sorted : list R) (radius : nat) : R := complement_up (product_down (firstn radius sorted)).

Lemma down_unit x : 0 <= x <= 1 -> 0 <= down x <= 1.
Proof.
  intros H. split.
  - apply round_ge_generic; try typeclasses eauto; [apply double_0|lra].
  - apply Rle_trans with x; [apply down_le|lra].
Qed.

Lemma product_down_below l : Forall double l -> Forall unit_range l -> forall start, double start ->
  unit_range start ->
  double (fold_left multiply_down l start) /\ unit_range (fold_left multiply_down l start) /\
  fold_left multiply_down l start <= start * product l.
Proof.
  unfold unit_range. induction 1 as [|x l Dx Dl IH]; intros U start Ds Us; cbn; [split; [auto|]; split; lra|].
  inversion_clear U as [|? ? Ux Ul].
  assert (E : multiply_down start x = down (start * x)) by now apply multiply_down_exact.
  assert (P : 0 <= start * x <= 1).
  { split; [apply Rmult_le_pos; lra|]. replace 1 with (1 * 1) by ring. apply Rmult_le_compat; lra. }
  rewrite E. destruct (IH Ul (down (start * x))) as (D & V & L); [apply down_double|now apply down_unit|].
  split; [exact D|]. split; [exact V|]. eapply Rle_trans; [exact L|].
  replace (start * (x * product l)) with (start * x * product l) by ring.
  apply Rmult_le_compat_r; [|apply down_le]. now apply (product_unit l).
Qed.

(* (d) The q of the program is at least that of the theorem. *)
Theorem q_at_above sorted radius : Forall double sorted -> Forall unit_range sorted ->
  shift_bound sorted radius <= q_at sorted radius.
Proof.
  intros D U. unfold q_at, shift_bound, product_down.
  assert (D' : Forall double (firstn radius sorted)).
  { clear U. revert radius. induction D; intros [|radius]; cbn; constructor; auto. }
  destruct (product_down_below (firstn radius sorted) D' (firstn_unit _ radius U) 1) as (Dp & Up & L).
  - apply double_1.
  - unfold unit_range; lra.
  - rewrite complement_up_exact by assumption.
    eapply Rle_trans; [|apply up_ge]. lra.
Qed.

(* The certificate with the numbers of the program: overlaps that are doubles below the exact ones, q as
   computed. Only the test of g against q remains to be made. *)
Theorem rounded_certificate {A W C} (dom : list A) (kernel : W -> A -> R) (synonym : W -> W -> Prop)
    (least : W -> R) (vote : list A -> C -> R) :
  (forall x, is_kernel dom (kernel x)) -> (forall x, unit_range (least x)) -> (forall x, double (least x)) ->
  (forall x x', synonym x x' -> least x <= overlap dom (kernel x) (kernel x')) ->
  (forall z c, 0 <= vote z c) -> (forall z c, vote z c <= 1) ->
  forall radius X X' sorted y,
  reachable synonym radius X X' -> Permutation (map least X) sorted -> StronglySorted Rle sorted ->
  (forall c, c <> y -> g dom kernel vote X y - g dom kernel vote X c > 2 * q_at sorted radius) ->
  forall c, c <> y -> g dom kernel vote X' y > g dom kernel vote X' c.
Proof.
  intros K U D L V0 V1 radius X X' sorted y Hr Hp Hs.
  apply certificate_margin with (synonym := synonym) (least := least) (R := radius) (sorted := sorted); auto.
  assert (S : forall P : R -> Prop, (forall x, P (least x)) -> Forall P sorted).
  { intros P HP. apply Forall_forall. intros s Hin. apply Permutation_sym in Hp.
    apply (Permutation_in _ Hp), in_map_iff in Hin as (x & <- & _). apply HP. }
  now apply q_at_above; apply S.
Qed.
