//! Every test of the engine's behaviour, in one program: it is linked once. `allocations.rs` has one of its own, for it
//! replaces the allocator.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]

mod support;

mod active_rules;
mod ai_sdk_properties;
mod ai_sdk_read;
mod ai_sdk_rules;
mod ai_sdk_shapes;
mod ai_sdk_ui_read;
mod ai_sdk_ui_rules;
mod anthropic_rules;
mod anthropic_sessions;
mod archive_rules;
mod attempt_rules;
mod beside_rules;
mod carry_rules;
mod change_rules;
mod checkpoint_ageing;
mod checkpoint_rules;
mod compact_faults;
mod compact_rules;
mod deletion_rules;
mod erase_rules;
mod factor3_rules;
mod fallback_rules;
mod figures;
mod floor_rules;
mod foreign_rules;
mod fork_rules;
mod full_rules;
mod gap_rules;
mod gemini_properties;
mod gemini_read;
mod gemini_recorded;
mod gemini_rules;
mod growth_rules;
mod guard_rules;
mod handoff_rules;
mod heir_rules;
mod import_rules;
mod indeterminate_rules;
mod input_rules;
mod instruction_rules;
mod job_rules;
mod keep_rules;
mod ladder_rules;
mod large_rules;
mod last_rules;
mod later_rules;
mod layered_rules;
mod limit_rules;
mod long_rules;
mod offload_rules;
mod openai_chat_rules;
mod openai_responses_read;
mod openai_responses_recorded;
mod openai_responses_rules;
mod openai_responses_shapes;
mod option_rules;
mod option_table;
mod overflow_texts;
mod pin_rules;
mod presets_page;
mod price_rules;
mod process_rules;
mod prompt_rules;
mod react_limits;
mod react_preset;
mod react_rules;
mod rebuild_rules;
mod recall_answers;
mod recall_pages;
mod recall_parts;
mod recall_passages;
mod recall_recorded;
mod recall_search;
mod recall_tools;
mod recovery_rules;
mod redaction_rules;
mod reference_rules;
mod report_rules;
mod reread_properties;
mod reread_rules;
mod rest_rules;
mod rewind_rules;
mod salvage_rules;
mod schema_rules;

mod server_rules;
mod session_lifecycle;
mod session_properties;
mod session_rules;
mod snapshot_rules;
mod stage_rules;
mod stranger_rules;
mod strategy_rules;
mod success_rules;
mod summary_recorded;
mod superseded_rules;
mod sync_properties;
mod taken_rules;
mod thread_rules;
mod tool_policy_rules;
mod transcript_rules;
mod undo_rules;
mod usage_rules;
mod verify_rules;
mod view_rules;
mod wire_exchange;
mod wire_provider;
mod wire_read;
mod wire_recorded;
mod wire_rules;
mod work_rules;
mod worth_rules;
