(* Every main theorem, with the axioms that it rests on. What is printed here is what `make proof` shows, and
   docs/proof.md says which function relies on which. *)
From Coq Require Import Reals List.
From Safer Require Import Smoothing Edits Rates Groups Folds EProcess Arcsine Vote Binomial Certificate Rounding.
Local Open Scope R_scope.

(* Smoothing.v *)
Check @expect_is_sum.
Print Assumptions expect_is_sum.
Check @smoothing_shift.
Print Assumptions smoothing_shift.
Check @unseen_slots.
Print Assumptions unseen_slots.
Check @smoothing_radius.
Print Assumptions smoothing_radius.
Check @smoothing_radius_minimum.
Print Assumptions smoothing_radius_minimum.
Check @certificate_margin.
Print Assumptions certificate_margin.
Check @certificate_half.
Print Assumptions certificate_half.
Check @function_certificate_margin.
Print Assumptions function_certificate_margin.
Check @overlap_whole.
Print Assumptions overlap_whole.
Check @overlap_whole_fits.
Print Assumptions overlap_whole_fits.
Check @enumerated_margin.
Print Assumptions enumerated_margin.

(* Edits.v *)
Check @edited_common.
Print Assumptions edited_common.
Check @script_within.
Print Assumptions script_within.
Check @deletion_is_choice.
Print Assumptions deletion_is_choice.
Check @deletion_overlap.
Print Assumptions deletion_overlap.
Check @deletion_splits.
Print Assumptions deletion_splits.
Check @synonyms_shift.
Print Assumptions synonyms_shift.
Check @edits_share.
Print Assumptions edits_share.
Check @edits_lead.
Print Assumptions edits_lead.
Check @worst_edits.
Print Assumptions worst_edits.
Check @edits_certificate.
Print Assumptions edits_certificate.
Check @edits_certificate_half.
Print Assumptions edits_certificate_half.
Check @rate_certificate.
Print Assumptions rate_certificate.
Check @rate_replace.
Print Assumptions rate_replace.
Check @edits_sharp.
Print Assumptions edits_sharp.
Check @edits_synonyms_sharp.
Print Assumptions edits_synonyms_sharp.

(* Rates.v *)
Check @rate_ratio.
Print Assumptions rate_ratio.
Check @rate_moves.
Print Assumptions rate_moves.
Check @rate_changes.
Print Assumptions rate_changes.

(* Groups.v *)
Check @groups_touched.
Print Assumptions groups_touched.
Check @groups_votes.
Print Assumptions groups_votes.
Check @groups_lead.
Print Assumptions groups_lead.
Check @groups_certificate.
Print Assumptions groups_certificate.
Check @groups_without_replacement.
Print Assumptions groups_without_replacement.
Check @groups_share.
Print Assumptions groups_share.

(* Folds.v *)
Check @fold_invariant.
Print Assumptions fold_invariant.
Check @fold_composes.
Print Assumptions fold_composes.
Check @fold_idempotent.
Print Assumptions fold_idempotent.
Check @fold_synonyms.
Print Assumptions fold_synonyms.
Check @fold_edits.
Print Assumptions fold_edits.
Check @fold_groups.
Print Assumptions fold_groups.

(* EProcess.v *)
Check @ville.
Print Assumptions ville.
Check @nested_claims.
Print Assumptions nested_claims.
Check @eprocess.
Print Assumptions eprocess.
Check @eprocess_several.
Print Assumptions eprocess_several.
Check @several_bound.
Print Assumptions several_bound.
Check @margin_falls.
Print Assumptions margin_falls.
Check @bets_proper.
Print Assumptions bets_proper.

(* Arcsine.v *)
Check @arcsine_formula.
Print Assumptions arcsine_formula.
Check @arcsine_is_e_table.
Print Assumptions arcsine_is_e_table.
Check @arcsine_eprocess.
Print Assumptions arcsine_eprocess.
Check @arcsine_falls.
Print Assumptions arcsine_falls.
Check @arcsine_bound.
Print Assumptions arcsine_bound.

(* Vote.v *)
Check @vote_e_is_mixture.
Print Assumptions vote_e_is_mixture.
Check @vote_e_falls.
Print Assumptions vote_e_falls.
Check @vote_is_right.
Print Assumptions vote_is_right.

(* Binomial.v *)
Check @tail_is_probability.
Print Assumptions tail_is_probability.
Check @clopper_pearson.
Print Assumptions clopper_pearson.
Check @hoeffding.
Print Assumptions hoeffding.
Check @hoeffding_certificate.
Print Assumptions hoeffding_certificate.

(* Certificate.v *)
Check @enumeration_is_right.
Print Assumptions enumeration_is_right.
Check @adaptive_two_labels.
Print Assumptions adaptive_two_labels.
Check @adaptive_several_labels.
Print Assumptions adaptive_several_labels.
Check @binomial_is_right.
Print Assumptions binomial_is_right.
Check @hoeffding_is_right.
Print Assumptions hoeffding_is_right.
Check @edits_enumeration.
Print Assumptions edits_enumeration.
Check @edits_two_labels.
Print Assumptions edits_two_labels.
Check @edits_several_labels.
Print Assumptions edits_several_labels.
Check @edits_binomial.
Print Assumptions edits_binomial.
Check @edits_hoeffding.
Print Assumptions edits_hoeffding.

(* Rounding.v *)
Check @multiply_down_exact.
Print Assumptions multiply_down_exact.
Check @multiply_down_no_overflow.
Print Assumptions multiply_down_no_overflow.
Check @complement_up_exact.
Print Assumptions complement_up_exact.
Check @null_probability_exact.
Print Assumptions null_probability_exact.
Check @null_probability_large.
Print Assumptions null_probability_large.
Check @ratio_bits.
Print Assumptions ratio_bits.
Check @ratio_down_exact.
Print Assumptions ratio_down_exact.
Check @overlap_below.
Print Assumptions overlap_below.
Check @q_at_above.
Print Assumptions q_at_above.
Check @rounded_certificate.
Print Assumptions rounded_certificate.
