"""Bugs to plant in the engine: what the simulator must find to be trusted."""

from tests.simulation.bugs import batches, intake, migrations, statements, states
from tests.simulation.bugs.bug import Bug

MICROBATCH = "jobs/engine/microbatch.py"
INGEST = "jobs/engine/ingest.py"
STATEMENTS = "jobs/engine/statements.py"
LOWER = "jobs/engine/lower.py"
STATES = "jobs/engine/states.py"
INVENTORY = "jobs/engine/inventory.py"
PARTITIONS = "jobs/engine/partitions.py"
STORE = "jobs/engine/store.py"
DUCK = "jobs/engine/executors/duck.py"
SEGMENTS = "jobs/engine/executors/segments.py"
MIGRATOR = "jobs/engine/migrator.py"
FILLING = "jobs/engine/filling.py"
REBUILD = "jobs/engine/rebuild.py"
MATCHING = "optimizer/migration/matching.py"

BUGS: tuple[Bug, ...] = (
    Bug(intake.lateness_is_ignored, MICROBATCH),
    Bug(intake.lateness_is_a_microsecond_short, MICROBATCH),
    Bug(intake.idle_streams_hold_everything_up, MICROBATCH),
    Bug(intake.idle_is_a_microsecond_late, MICROBATCH),
    Bug(intake.the_fastest_stream_leads, MICROBATCH),
    Bug(intake.the_watermark_goes_back, MICROBATCH),
    Bug(intake.late_tuples_vanish, MICROBATCH),
    Bug(intake.rejected_rows_vanish, MICROBATCH),
    Bug(intake.late_tuples_join, MICROBATCH),
    Bug(intake.silence_is_not_noticed, INGEST),
    Bug(intake.the_newest_is_of_the_batch, INGEST),
    Bug(intake.who_is_at_the_watermark_is_late, INGEST),
    Bug(intake.who_is_just_late_is_in_time, INGEST),
    Bug(intake.the_future_begins_a_microsecond_early, INGEST, migrations=True),
    Bug(intake.the_future_is_taken_in, INGEST),
    Bug(statements.a_window_is_a_microsecond_narrow, STATEMENTS),
    Bug(statements.a_window_is_a_microsecond_wide, STATEMENTS),
    Bug(statements.a_window_has_one_side, STATEMENTS),
    Bug(statements.nulls_meet, STATEMENTS),
    Bug(statements.both_sides_count_what_is_new, STATEMENTS),
    Bug(statements.no_side_counts_what_is_new, STATEMENTS),
    Bug(statements.a_select_is_forgotten, STATEMENTS),
    Bug(statements.windows_close_too_early, MICROBATCH),
    Bug(statements.windows_wait_for_no_partner, LOWER),
    Bug(statements.a_window_is_put_out_twice, STATEMENTS),
    Bug(statements.a_window_is_left_out, STATEMENTS),
    Bug(statements.a_window_lacks_its_last_pane, STATEMENTS),
    Bug(statements.a_window_has_its_end, STATEMENTS),
    Bug(statements.a_pane_is_a_slide, STATEMENTS),
    Bug(statements.times_are_rounded_towards_zero, STATEMENTS),
    Bug(statements.a_combined_tuple_counts_once, STATEMENTS),
    Bug(statements.averages_are_averaged, STATEMENTS),
    Bug(statements.nulls_are_counted, STATEMENTS),
    Bug(statements.a_filter_is_forgotten, STATEMENTS),
    Bug(states.purged_too_early, LOWER),
    Bug(states.retention_is_a_microsecond_short, LOWER),
    Bug(states.rows_are_younger_than_they_say, LOWER),
    Bug(states.a_partition_ends_where_it_begins, PARTITIONS),
    Bug(states.what_is_just_needed_is_not_written, PARTITIONS),
    Bug(states.any_time_decides, LOWER),
    Bug(states.purged_a_microsecond_early, STATES),
    Bug(states.never_purged, STATES),
    Bug(states.a_batch_sees_itself, DUCK),
    Bug(states.a_restart_forgets_the_last_batch, DUCK),
    Bug(states.rows_say_a_later_batch, DUCK),
    Bug(states.tables_go_too_early, SEGMENTS),
    Bug(states.what_is_overdue_is_read, SEGMENTS),
    Bug(states.a_merge_of_the_copy_forgets_a_table, SEGMENTS, migrations=True),
    Bug(states.a_partition_is_not_written, PARTITIONS),
    Bug(states.writes_are_repeated, STORE),
    Bug(states.what_is_written_is_there, STORE),
    Bug(states.what_is_dropped_stays, STORE),
    Bug(states.a_merged_file_stays, STORE),
    Bug(states.a_merge_loses_a_file, STORE),
    Bug(states.a_merged_file_goes_with_its_oldest, STORE),
    Bug(states.lost_tables_are_not_noticed, INVENTORY),
    Bug(states.lost_rows_are_not_noticed, INVENTORY),
    Bug(states.an_old_storage_is_not_noticed, INVENTORY),
    Bug(states.all_writers_are_one, STORE),
    Bug(states.progress_comes_before_its_tables, MICROBATCH, migrations=True),
    Bug(states.tables_come_before_their_decision, MICROBATCH),
    Bug(batches.a_replay_decides_anew, MICROBATCH),
    Bug(batches.a_replay_takes_all_for_new, MICROBATCH),
    Bug(batches.a_restart_forgets_the_watermark, MICROBATCH),
    Bug(batches.a_restart_forgets_the_streams, MICROBATCH),
    Bug(batches.a_restart_forgets_what_was_put_out, MICROBATCH),
    Bug(migrations.an_aborted_plan_runs, MIGRATOR, migrations=True),
    Bug(migrations.a_restart_forgets_a_hold, MIGRATOR, migrations=True),
    Bug(migrations.a_hold_is_ignored, MIGRATOR, migrations=True),
    Bug(migrations.a_migration_does_not_wait_for_its_batch, MIGRATOR, migrations=True),
    Bug(migrations.a_restart_forgets_a_migration, MIGRATOR, migrations=True),
    Bug(migrations.a_failing_command_is_ignored, MIGRATOR, migrations=True),
    Bug(migrations.a_part_is_taken_for_the_whole, MIGRATOR, migrations=True),
    Bug(migrations.a_part_is_forgotten, MIGRATOR, migrations=True),
    Bug(migrations.both_plans_run_too_briefly, MIGRATOR, migrations=True),
    Bug(migrations.both_plans_run_a_microsecond_too_briefly, MIGRATOR, migrations=True),
    Bug(migrations.a_parallel_track_overlooks_a_microsecond, FILLING, migrations=True),
    Bug(migrations.nobody_maintains_what_is_built, MIGRATOR, migrations=True),
    Bug(migrations.a_restart_forgets_how_far_a_fill_was, FILLING, migrations=True),
    Bug(migrations.slices_overlap, FILLING, migrations=True),
    Bug(migrations.a_fill_stops_early, FILLING, migrations=True),
    Bug(migrations.a_fill_is_taken_for_done, FILLING, migrations=True),
    Bug(migrations.what_an_attempt_filled_stays, FILLING, migrations=True),
    Bug(migrations.a_fill_reads_what_is_younger, REBUILD, migrations=True),
    Bug(migrations.a_fill_misses_the_last_batch, REBUILD, migrations=True),
    Bug(migrations.a_fill_forgets_selects, REBUILD, migrations=True),
    Bug(migrations.slices_share_their_edge, REBUILD, migrations=True),
    Bug(migrations.slices_leave_a_gap, REBUILD, migrations=True),
    Bug(migrations.the_first_query_decides, LOWER, migrations=True),
    Bug(migrations.the_old_plan_puts_out_everything, LOWER, migrations=True),
    Bug(migrations.a_replay_forgets_the_cut_over, MICROBATCH, migrations=True),
    Bug(migrations.what_an_attempt_left_is_kept, STATES, migrations=True),
    Bug(migrations.a_replay_copies_what_is_overdue, STATES, migrations=True),
    Bug(migrations.a_part_maintains_what_others_share, MATCHING, migrations=True),
    Bug(migrations.what_was_dropped_once_is_selected_on, MATCHING, migrations=True),
)
"""All of them, module by module."""
