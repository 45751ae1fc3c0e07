(* A rate of deletion that depends on the length: what it costs that edits change it.

   X is drawn with p, and X', which has another number of tokens, with p'. What both share, C', goes from p to p'. With
   r the ratio of the chances that C' keeps certain tokens, the mean under p' is the mean of r h under p; so the two
   means differ by that of (r - 1) h, which Cauchy and Schwarz bound by the root of the mean of (r - 1)^2. Over
   independent tokens the mean of r^2 is a product, (1 + x)^m. Here all of it is one induction over tokens, of

     (M' h - c M h)^2 <= ((1 + x)^m - 2 c + c^2) M (h^2)      for all c,

   whose right side is the mean of (r - c)^2 times that of h^2. At c = 1 it is the claim. *)
From Coq Require Import Reals List Permutation Sorted Lra Lia.
From Safer Require Import Smoothing Edits.
Import ListNotations.
Local Open Scope R_scope.

(* ------------------------------------------------------------------------- Cauchy and Schwarz *)

(* Of two terms. *)
Lemma schwarz_two r s a b c d : 0 <= a -> 0 <= b -> 0 <= c -> 0 <= d -> r * r <= a * c -> s * s <= b * d ->
  (r + s) * (r + s) <= (a + b) * (c + d).
Proof.
  intros Ha Hb Hc Hd Hr Hs.
  assert (P : 0 <= a * d + b * c) by (apply Rplus_le_le_0_compat; apply Rmult_le_pos; assumption).
  assert (Q : Rsqr (2 * (r * s)) <= Rsqr (a * d + b * c)).
  { assert (H : r * r * (s * s) <= a * c * (b * d)) by (apply Rmult_le_compat; auto; apply Rle_0_sqr).
    pose proof (Rle_0_sqr (a * d - b * c)) as N. unfold Rsqr in *.
    replace (2 * (r * s) * (2 * (r * s))) with (4 * (r * r * (s * s))) by ring.
    replace ((a * d - b * c) * (a * d - b * c))
      with ((a * d + b * c) * (a * d + b * c) - 4 * (a * c * (b * d))) in N by ring. lra. }
  pose proof (Rsqr_incr_0_var _ _ Q P) as E.
  replace ((r + s) * (r + s)) with (r * r + s * s + 2 * (r * s)) by ring.
  replace ((a + b) * (c + d)) with (a * c + b * d + (a * d + b * c)) by ring. lra.
Qed.

(* A mean, squared. *)
Lemma mean_square {A} (dom : list A) k f : is_kernel dom k ->
  sum dom (fun a => k a * f a) * sum dom (fun a => k a * f a) <= sum dom (fun a => k a * (f a * f a)).
Proof.
  intros [P S]. set (m := sum dom (fun a => k a * f a)).
  assert (N : 0 <= sum dom (fun a => k a * ((f a - m) * (f a - m)))).
  { apply sum_nonneg; intros a _. apply Rmult_le_pos; [apply P|apply Rle_0_sqr]. }
  assert (E : sum dom (fun a => k a * ((f a - m) * (f a - m))) =
              sum dom (fun a => k a * (f a * f a)) + m * (- (2 * m)) + 1 * (m * m)).
  { unfold m at 3. rewrite <- S, <- !sum_scale, <- !sum_plus. apply sum_ext; intros a _. ring. }
  lra.
Qed.

(* ----------------------------------------------------------------------------- two rates *)

Section Rates.
  Context {A W : Type}.
  Variable dom : list A.
  Variable kernel : W -> A -> R.
  Variables p p' : R.
  Hypothesis kernels : forall x, is_kernel dom (kernel x).
  Hypothesis p_range : 0 < p < 1.
  Hypothesis p'_range : 0 < p' < 1.

  Let M := mean_deleting dom kernel p.
  Let M' := mean_deleting dom kernel p'.

  Definition apart : R := (p - p') * (p - p') / (p * (1 - p)).

  Lemma apart_nonneg : 0 <= apart.
  Proof.
    unfold apart. apply Rmult_le_pos; [apply Rle_0_sqr|]. left. apply Rinv_0_lt_compat, Rmult_lt_0_compat; lra.
  Qed.

  (* The mean of r^2 for one token. *)
  Lemma apart_ratio : p' * p' / p + (1 - p') * (1 - p') / (1 - p) = 1 + apart.
  Proof. unfold apart. field. lra. Qed.

  Lemma apart_power n : 1 <= (1 + apart) ^ n.
  Proof. apply pow_R1_Rle. pose proof apart_nonneg. lra. Qed.

  Definition room (n : nat) (c : R) : R := (1 + apart) ^ n - 2 * c + c * c.

  Lemma room_nonneg n c : 0 <= room n c.
  Proof.
    pose proof (apart_power n). pose proof (Rle_0_sqr (1 - c)) as S. unfold room, Rsqr in *.
    replace ((1 - c) * (1 - c)) with (1 - 2 * c + c * c) in S by ring. lra.
  Qed.

  Lemma mean_square_nonneg X : forall h, 0 <= M X (fun z => h z * h z).
  Proof.
    induction X as [|x X IH]; intros h; [apply Rle_0_sqr|].
    unfold M in *. rewrite mean_deleting_cons. pose proof (IH h). destruct (kernels x) as [P _].
    assert (0 <= sum dom (fun a => kernel x a * mean_deleting dom kernel p X (fun z => h (a :: z) * h (a :: z)))).
    { apply sum_nonneg; intros a _. apply Rmult_le_pos; [apply P|apply (IH (fun z => h (a :: z)))]. }
    apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra.
  Qed.

  Theorem rate_ratio X : forall h c,
    (M' X h - c * M X h) * (M' X h - c * M X h) <= room (length X) c * M X (fun z => h z * h z).
  Proof.
    induction X as [|x X IH]; intros h c.
    { unfold M, M', mean_deleting, mean, room. cbn. right. ring. }
    unfold M, M' in *. rewrite !mean_deleting_cons. cbn [length].
    set (u := mean_deleting dom kernel p' X h). set (v := mean_deleting dom kernel p X h).
    set (S0 := mean_deleting dom kernel p X (fun z => h z * h z)).
    set (fu := fun a => mean_deleting dom kernel p' X (fun z => h (a :: z))).
    set (fv := fun a => mean_deleting dom kernel p X (fun z => h (a :: z))).
    set (fs := fun a => mean_deleting dom kernel p X (fun z => h (a :: z) * h (a :: z))).
    change (sum dom (fun a => kernel x a * mean_deleting dom kernel p' X (fun z => h (a :: z))))
      with (sum dom (fun a => kernel x a * fu a)).
    change (sum dom (fun a => kernel x a * mean_deleting dom kernel p X (fun z => h (a :: z))))
      with (sum dom (fun a => kernel x a * fv a)).
    change (sum dom (fun a => kernel x a * mean_deleting dom kernel p X (fun z => h (a :: z) * h (a :: z))))
      with (sum dom (fun a => kernel x a * fs a)).
    set (r0 := p' / p). set (r1 := (1 - p') / (1 - p)).
    assert (Hr0 : 0 < r0) by (unfold r0; apply Rdiv_lt_0_compat; lra).
    assert (Hr1 : 0 < r1) by (unfold r1; apply Rdiv_lt_0_compat; lra).
    assert (E0 : p' = p * r0) by (unfold r0; field; lra).
    assert (E1 : 1 - p' = (1 - p) * r1) by (unfold r1; field; lra).
    set (n := length X) in *.
    (* one token deleted *)
    assert (B0 : (u - c / r0 * v) * (u - c / r0 * v) <= room n (c / r0) * S0) by apply IH.
    (* or kept *)
    set (w := sum dom (fun a => kernel x a * (fu a - c / r1 * fv a))).
    set (S1 := sum dom (fun a => kernel x a * fs a)).
    assert (B1 : w * w <= room n (c / r1) * S1).
    { eapply Rle_trans; [apply (mean_square dom (kernel x) (fun a => fu a - c / r1 * fv a) (kernels x))|].
      unfold S1. rewrite (Rmult_comm (room n (c / r1))), <- sum_scale. apply sum_le; intros a _.
      destruct (kernels x) as [P _].
      replace (kernel x a * fs a * room n (c / r1)) with (kernel x a * (room n (c / r1) * fs a)) by ring.
      apply Rmult_le_compat_l; [apply P|]. apply (IH (fun z => h (a :: z)) (c / r1)). }
    assert (Ew : w = sum dom (fun a => kernel x a * fu a) - c / r1 * sum dom (fun a => kernel x a * fv a)).
    { unfold w. rewrite (sum_ext dom _ (fun a => kernel x a * fu a + kernel x a * fv a * (- (c / r1))))
        by (intros; ring). rewrite sum_plus, sum_scale. ring. }
    assert (N0 : 0 <= S0) by apply (mean_square_nonneg X h).
    assert (N1 : 0 <= S1).
    { apply sum_nonneg; intros a _. destruct (kernels x) as [P _]. apply Rmult_le_pos; [apply P|].
      apply (mean_square_nonneg X (fun z => h (a :: z))). }
    pose proof (room_nonneg n (c / r0)) as V0. pose proof (room_nonneg n (c / r1)) as V1.
    replace (p' * u + (1 - p') * sum dom (fun a => kernel x a * fu a) -
             c * (p * v + (1 - p) * sum dom (fun a => kernel x a * fv a)))
      with (p' * (u - c / r0 * v) + (1 - p') * w)
      by (rewrite Ew, E1, E0; field; lra).
    assert (Er : room (S n) c = p * (r0 * r0) * room n (c / r0) + (1 - p) * (r1 * r1) * room n (c / r1)).
    { unfold room. cbn [pow]. rewrite <- apart_ratio. unfold r0, r1. field. lra. }
    rewrite Er.
    apply schwarz_two.
    - apply Rmult_le_pos; [|exact V0]. apply Rmult_le_pos; [lra|apply Rle_0_sqr].
    - apply Rmult_le_pos; [|exact V1]. apply Rmult_le_pos; [lra|apply Rle_0_sqr].
    - apply Rmult_le_pos; lra.
    - apply Rmult_le_pos; lra.
    - replace (p * (r0 * r0) * room n (c / r0) * (p * S0)) with (p * r0 * (p * r0) * (room n (c / r0) * S0)) by ring.
      replace (p' * (u - c / r0 * v) * (p' * (u - c / r0 * v)))
        with (p * r0 * (p * r0) * ((u - c / r0 * v) * (u - c / r0 * v))) by (rewrite <- E0; ring).
      apply Rmult_le_compat_l; [apply Rle_0_sqr|exact B0].
    - replace ((1 - p) * (r1 * r1) * room n (c / r1) * ((1 - p) * S1))
        with ((1 - p) * r1 * ((1 - p) * r1) * (room n (c / r1) * S1)) by ring.
      replace ((1 - p') * w * ((1 - p') * w)) with ((1 - p) * r1 * ((1 - p) * r1) * (w * w)) by (rewrite <- E1; ring).
      apply Rmult_le_compat_l; [apply Rle_0_sqr|exact B1].
  Qed.

  Lemma mean_lead q X f g : 0 < q <= 1 -> mean_deleting dom kernel q X (fun z => (f z - g z + 1) * / 2) =
    (mean_deleting dom kernel q X f - mean_deleting dom kernel q X g + 1) * / 2.
  Proof.
    intros Hq. unfold mean_deleting, mean. rewrite expect_scale, expect_plus, expect_minus. do 2 f_equal.
    apply expect_one_kernels. apply Forall_forall; intros k Hk. apply in_map_iff in Hk as (x & <- & _).
    now apply deleting_kernel.
  Qed.

  (* What the change of the rate costs. *)
  Theorem rate_moves X h t : (forall z, unit_range (h z)) -> 0 <= t ->
    (1 + apart) ^ length X - 1 <= 2 * t * (2 * t) -> Rabs (M' X h - M X h) <= t.
  Proof.
    intros Hh Ht Hx. set (g := fun z => h z - (1 - h z)).
    assert (E : forall q, 0 < q < 1 -> mean_deleting dom kernel q X g = 2 * mean_deleting dom kernel q X h - 1).
    { intros q Hq. unfold g. rewrite mean_deleting_minus, mean_deleting_minus.
      assert (O : mean_deleting dom kernel q X (fun _ => 1) = 1).
      { apply expect_one_kernels. apply Forall_forall; intros k Hk. apply in_map_iff in Hk as (x & <- & _).
        apply deleting_kernel; [lra|apply kernels]. }
      rewrite O. ring. }
    pose proof (rate_ratio X g 1) as B. unfold M, M' in *. rewrite !E in B by assumption.
    set (u := mean_deleting dom kernel p' X h) in *. set (v := mean_deleting dom kernel p X h) in *.
    assert (U : mean_deleting dom kernel p X (fun z => g z * g z) <= 1).
    { apply mean_deleting_unit; [apply kernels|lra|]. intros z. unfold g. destruct (Hh z) as [H0 H1].
      split; [apply Rle_0_sqr|].
      replace ((h z - (1 - h z)) * (h z - (1 - h z))) with (1 - 4 * (h z * (1 - h z))) by ring.
      assert (0 <= h z * (1 - h z)) by (apply Rmult_le_pos; lra). lra. }
    assert (N : 0 <= (1 + apart) ^ length X - 1) by (pose proof (apart_power (length X)); lra).
    assert (D : Rsqr (u - v) <= Rsqr t).
    { unfold room in B. replace ((1 + apart) ^ length X - 2 * 1 + 1 * 1) with ((1 + apart) ^ length X - 1) in B by ring.
      assert (F : ((1 + apart) ^ length X - 1) * mean_deleting dom kernel p X (fun z => g z * g z) <=
                  ((1 + apart) ^ length X - 1) * 1) by (apply Rmult_le_compat_l; assumption).
      replace ((2 * u - 1 - 1 * (2 * v - 1)) * (2 * u - 1 - 1 * (2 * v - 1)))
        with (4 * ((u - v) * (u - v))) in B by ring.
      replace (2 * t * (2 * t)) with (4 * (t * t)) in Hx by ring. unfold Rsqr. lra. }
    apply Rsqr_le_abs_0 in D. now rewrite (Rabs_right t) in D by lra.
  Qed.

  (* (1 + x)^n is at most 1/(1 - nx). *)
  Lemma power_below n : INR n * apart < 1 -> (1 + apart) ^ n * (1 - INR n * apart) <= 1.
  Proof.
    pose proof apart_nonneg as N. induction n as [|n IH]; intros H.
    { cbn. lra. }
    rewrite S_INR in *. cbn [pow].
    assert (Hn : INR n * apart < 1) by lra.
    pose proof (pos_INR n) as Pn. pose proof (apart_power n) as Pp.
    assert (F : (1 + apart) * (1 - (INR n + 1) * apart) <= 1 - INR n * apart).
    { assert (0 <= (INR n + 1) * (apart * apart)) by (apply Rmult_le_pos; [lra|apply Rle_0_sqr]).
      replace ((1 + apart) * (1 - (INR n + 1) * apart))
        with (1 - INR n * apart - (INR n + 1) * (apart * apart)) by ring. lra. }
    assert (G : (1 + apart) ^ n * ((1 + apart) * (1 - (INR n + 1) * apart)) <= (1 + apart) ^ n * (1 - INR n * apart))
      by (apply Rmult_le_compat_l; [lra|exact F]).
    replace ((1 + apart) * (1 + apart) ^ n * (1 - (INR n + 1) * apart))
      with ((1 + apart) ^ n * ((1 + apart) * (1 - (INR n + 1) * apart))) by ring.
    specialize (IH Hn). lra.
  Qed.

  Lemma power_enough n m t : (n <= m)%nat -> INR m * apart < 1 ->
    INR m * apart / (1 - INR m * apart) <= 2 * t * (2 * t) -> (1 + apart) ^ n - 1 <= 2 * t * (2 * t).
  Proof.
    intros Hn Hm Ht. pose proof apart_nonneg as N. pose proof (power_below m Hm) as B.
    assert (L : (1 + apart) ^ n <= (1 + apart) ^ m) by (apply Rle_pow; [lra|exact Hn]).
    assert (U : (1 + apart) ^ m - 1 <= INR m * apart / (1 - INR m * apart)); [|lra].
    apply Rmult_le_reg_r with (1 - INR m * apart); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  Qed.
End Rates.

Lemma inserted_length {W} a (C X : list W) : inserted a C X -> (length X = length C + a)%nat.
Proof. induction 1; cbn; lia. Qed.

Lemma reachable_length {W} (synonym : W -> W -> Prop) s X X' : reachable synonym s X X' -> length X = length X'.
Proof. induction 1; cbn; congruence. Qed.

(* --------------------------------------------------------------------------- the certificate *)

Section Certificate.
  Context {A W C : Type}.
  Variable dom : list A.
  Variable kernel : W -> A -> R.
  Variable rate : nat -> R.
  Variable synonym : W -> W -> Prop.
  Variable vote : list A -> C -> R.
  Hypothesis kernels : forall x, is_kernel dom (kernel x).
  Hypothesis vote_nonneg : forall z c, 0 <= vote z c.
  Hypothesis vote_one : forall z c, vote z c <= 1.
  Hypothesis rate_range : forall L, 0 < rate L < 1.

  Variables (X : list W) (least : W -> R) (sorted : list R).
  Let p := rate (length X).
  Hypothesis least_unit : forall x, unit_range (least x).
  Hypothesis least_below :
    forall x x', synonym x x' -> least x <= p + (1 - p) * overlap dom (kernel x) (kernel x').
  Hypothesis sorted_overlaps : Permutation (map least X) sorted /\ StronglySorted Rle sorted.

  (* The threshold on (1 + lead)/2 for a tokens out and b in, where the rate becomes p' and that costs t. *)
  Definition threshold_by (p' q t : R) (a b : nat) : R := 1 + p ^ a * (/ p' ^ b / 2 - (1 - q - t)).

  Theorem rate_changes i d r s X' q t y c : edited synonym i d r s X X' -> shift_bound sorted s <= q -> 0 <= t ->
    let p' := rate (length X') in let mx := INR (min (length X) (length X')) * apart p p' in
    mx < 1 -> mx / (1 - mx) <= 2 * t * (2 * t) ->
    (1 + (g_rate dom kernel rate vote X y - g_rate dom kernel rate vote X c)) / 2 >
      threshold_by p' q t (d + r) (i + r) ->
    g_rate dom kernel rate vote X' y > g_rate dom kernel rate vote X' c.
  Proof.
    intros He Hq Ht p' mx Hm Hx Hg. destruct sorted_overlaps as [Hp Hs].
    destruct (edited_common synonym i d r s X X' He) as (K & K' & HK & Hr & HK').
    set (a := (d + r)%nat) in *. set (b := (i + r)%nat) in *.
    pose proof (rate_range (length X)) as Rp. fold p in Rp.
    pose proof (rate_range (length X')) as Rp'. fold p' in Rp'.
    set (h := fun z => (vote z y - vote z c + 1) * / 2).
    assert (Hh : forall z, unit_range (h z)).
    { intros z. unfold h. pose proof (vote_nonneg z y). pose proof (vote_nonneg z c).
      pose proof (vote_one z y). pose proof (vote_one z c). split; lra. }
    assert (Ep : forall w, 0 < w < 1 -> 0 < w <= 1) by (intros; lra).
    pose proof (deletion_bounds dom kernel p kernels (Ep p Rp) a K X HK h Hh) as [_ B0].
    pose proof (deletion_bounds dom kernel p' kernels (Ep p' Rp') b K' X' HK' h Hh) as [B1 _].
    pose proof (Rabs_le_both _ _ (synonyms_shift dom kernel p kernels (Ep p Rp) synonym least least_unit least_below
                  a s K K' X sorted h HK Hr Hp Hs Hh)) as [B2 _].
    assert (Hl : (length K' <= min (length X) (length X'))%nat).
    { pose proof (inserted_length a K X HK). pose proof (inserted_length b K' X' HK').
      pose proof (reachable_length synonym s K K' Hr). lia. }
    pose proof (Rabs_le_both _ _ (rate_moves dom kernel p p' kernels Rp Rp' K' h t Hh Ht
                  (power_enough p p' Rp _ _ t Hl Hm Hx))) as [B3 _].
    unfold g_rate, g_deleting in *. fold p in Hg. fold p'.
    assert (EX : mean_deleting dom kernel p X h = (mean_deleting dom kernel p X (fun z => vote z y) -
                   mean_deleting dom kernel p X (fun z => vote z c) + 1) * / 2)
      by (apply mean_lead; [apply kernels|lra]).
    assert (EX' : mean_deleting dom kernel p' X' h = (mean_deleting dom kernel p' X' (fun z => vote z y) -
                   mean_deleting dom kernel p' X' (fun z => vote z c) + 1) * / 2)
      by (apply mean_lead; [apply kernels|lra]).
    set (x := mean_deleting dom kernel p X h) in *. set (x' := mean_deleting dom kernel p' X' h) in *.
    set (k := mean_deleting dom kernel p K h) in *. set (k' := mean_deleting dom kernel p K' h) in *.
    set (k'' := mean_deleting dom kernel p' K' h) in *.
    assert (Pa : 0 < p ^ a) by (apply pow_lt; lra). assert (Pb : 0 < p' ^ b) by (apply pow_lt; lra).
    unfold threshold_by in Hg.
    assert (G : p ^ a * (/ p' ^ b / 2) < p ^ a * (k - q - t)) by lra.
    apply Rmult_lt_reg_l in G; [|exact Pa].
    assert (G' : / p' ^ b / 2 < k'') by lra.
    apply (Rmult_lt_compat_l (p' ^ b)) in G'; [|exact Pb].
    replace (p' ^ b * (/ p' ^ b / 2)) with (/ 2) in G' by (field; lra). lra.
  Qed.
End Certificate.
